package settings

import (
	"errors"
	"fmt"
	"strings"

	"outboxrelay/envelope"
)

// tenantMark stands in a topic template for the tenant's id.
const tenantMark = "{tenant}"

// maxTopicLength is Kafka's own limit.
const maxTopicLength = 249

// TopicFor is the topic of a scope's events. The template is RELAY_KAFKA_TOPIC or
// RELAY_DEAD_LETTER_TOPIC; {tenant} in it stands for the tenant's id. It errs if
// that makes a name that Kafka refuses, and for {tenant} and the non-tenant scope.
func TopicFor(template string, scope envelope.Scope) (string, error) {
	topic := template
	if strings.Contains(template, tenantMark) {
		id, isTenant := scope.Tenant()
		if !isTenant {
			return "", fmt.Errorf("topic %.80q needs a tenant: the %v has none", template, scope)
		}
		topic = strings.ReplaceAll(template, tenantMark, id)
	}
	if problem := topicProblem(topic); problem != "" {
		return "", fmt.Errorf("topic %.80q %s", topic, problem)
	}
	return topic, nil
}

// topicProblem says which of Kafka's rules for the names of topics is broken, or
// nothing.
func topicProblem(topic string) string {
	switch {
	case topic == "" || topic == "." || topic == "..":
		return "can't be a topic's name"
	case strings.ContainsFunc(topic, illegalInTopic):
		return "holds other characters than A-Z, a-z, 0-9, '.', '_' and '-'"
	case len(topic) > maxTopicLength:
		return fmt.Sprintf("is %d characters long, %d at most", len(topic), maxTopicLength)
	}
	return ""
}

func illegalInTopic(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
		return false
	}
	return true
}

// topic checks a topic that all scopes share.
func (l *loader) topic(name, text string) string {
	if problem := topicProblem(text); problem != "" {
		l.fault(name, "%.80q %s", text, problem)
	}
	return text
}

// topicTemplate checks a topic that may hold {tenant}, as far as that can be done
// without a tenant. It may be empty.
func (l *loader) topicTemplate(name, text string) string {
	if text == "" {
		return ""
	}
	if problem := topicProblem(strings.ReplaceAll(text, tenantMark, "x")); problem != "" {
		l.fault(name, "%.80q %s; only %s may stand for the tenant", text, problem, tenantMark)
	}
	return text
}

// topicsFor is the topics of all scopes.
func topicsFor(template string, scopes []envelope.Scope) (map[string]bool, error) {
	topics := map[string]bool{}
	var problems problems
	for _, scope := range scopes {
		topic, err := TopicFor(template, scope)
		problems.add(err)
		topics[topic] = true
	}
	return topics, problems.err()
}

// problems gathers what is wrong with a list, as one error of one line. A list may
// have thousands of entries, so only the first problems are told.
type problems struct {
	told []string
	more int
}

func (p *problems) add(err error) {
	switch {
	case err == nil:
	case len(p.told) < 5:
		p.told = append(p.told, err.Error())
	default:
		p.more++
	}
}

func (p *problems) err() error {
	if len(p.told) == 0 {
		return nil
	}
	text := strings.Join(p.told, "; ")
	if p.more > 0 {
		text += fmt.Sprintf("; and %d more", p.more)
	}
	return errors.New(text)
}
