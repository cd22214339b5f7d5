package kafkasink

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	minInsyncConfig  = "min.insync.replicas"
	maxMessageConfig = "max.message.bytes"
	segmentConfig    = "segment.bytes"
	cleanupConfig    = "cleanup.policy"
)

// topicSettings is what a cluster says about one topic.
type topicSettings struct {
	name       string
	role       role
	id         [16]byte // zero from brokers older than topic ids
	missing    error    // why nothing else is known: not there, or not visible
	partitions int
	replicas   int  // of the partition that has fewest
	inSync     int  // likewise, of those that are in sync now
	mayWrite   bool // as far as the cluster tells, as is mayRead
	mayRead    bool
	configs    error
	minInsync  int
	maxMessage int // the largest batch: max.message.bytes, or segment.bytes if that is less
	cleanup    string
}

// role is what a topic is for.
type role int

const (
	forEvents role = iota
	forLetters
	forLedger
)

// readTopics asks for the settings of topics. The error is about all of them: no
// broker could be asked.
func readTopics(ctx context.Context, client *kgo.Client, names []string) (map[string]topicSettings, error) {
	topics := make(map[string]topicSettings, len(names))
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	req.Topics = make([]kmsg.MetadataRequestTopic, 0, len(names)) // nil would mean all topics
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("ask for topics: %w", err)
	}
	for i := range resp.Topics {
		t := describeTopic(&resp.Topics[i])
		topics[t.name] = t
	}
	if len(names) == 0 {
		return topics, nil
	}
	configs, err := describeConfigs(names).RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("ask for topic settings: %w", err)
	}
	for _, c := range configs.Resources {
		if t, ok := topics[c.ResourceName]; ok {
			t.readConfigs(c)
			topics[c.ResourceName] = t
		}
	}
	return topics, nil
}

// describeConfigs asks for some settings of each topic, since all of them are much for
// thousands of topics.
func describeConfigs(topics []string) *kmsg.DescribeConfigsRequest {
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, name := range topics {
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType = kmsg.ConfigResourceTypeTopic
		resource.ResourceName = name
		resource.ConfigNames = []string{minInsyncConfig, maxMessageConfig, segmentConfig, cleanupConfig}
		req.Resources = append(req.Resources, resource)
	}
	return req
}

func describeTopic(answer *kmsg.MetadataResponseTopic) topicSettings {
	t := topicSettings{id: answer.TopicID, partitions: len(answer.Partitions)}
	if answer.Topic != nil {
		t.name = *answer.Topic
	}
	t.missing = kerr.ErrorForCode(answer.ErrorCode)
	if errors.Is(t.missing, kerr.LeaderNotAvailable) {
		t.missing = nil // an election; sending waits for it
	}
	for i, p := range answer.Partitions {
		if i == 0 || len(p.Replicas) < t.replicas {
			t.replicas = len(p.Replicas)
		}
		if i == 0 || len(p.ISR) < t.inSync {
			t.inSync = len(p.ISR)
		}
	}
	t.mayWrite, t.mayRead = true, true
	if ops := answer.AuthorizedOperations; ops != -2147483648 { // the protocol's word for "not told"
		t.mayWrite = ops&(1<<kmsg.ACLOperationWrite) != 0
		t.mayRead = ops&(1<<kmsg.ACLOperationRead) != 0
	}
	return t
}

func (t *topicSettings) readConfigs(c kmsg.DescribeConfigsResponseResource) {
	if t.configs = kerr.ErrorForCode(c.ErrorCode); t.configs != nil {
		return
	}
	message, segment := 1048588, 1<<30 // Kafka's defaults, should a broker not tell
	t.minInsync, t.cleanup = 1, "delete"
	for _, entry := range c.Configs {
		if entry.Value == nil {
			continue
		}
		if entry.Name == cleanupConfig {
			t.cleanup = *entry.Value
			continue
		}
		n, err := strconv.Atoi(*entry.Value)
		if err != nil {
			continue
		}
		switch entry.Name {
		case minInsyncConfig:
			t.minInsync = n
		case maxMessageConfig:
			message = n
		case segmentConfig:
			segment = n
		}
	}
	t.maxMessage = min(message, segment)
}
