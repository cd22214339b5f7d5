package kafkaserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"time"
)

// adminName is the user that may do everything.
const adminName = "admin"

// Credentials are what a client needs for a secured cluster, as its administrator: TLS, and SCRAM-SHA-512.
type Credentials struct {
	Addrs    []string `json:"addrs"`
	CA       string   `json:"ca"` // certificate of the brokers' issuer, PEM
	Username string   `json:"username"`
	Password string   `json:"password"`
}

// Credentials returns the administrator's. It panics if the cluster was not started with Options.Secure.
func (c *Cluster) Credentials() Credentials {
	return Credentials{Addrs: c.Addrs(), CA: c.secrets.ca, Username: adminName, Password: c.secrets.password}
}

// secrets are a secured cluster's keys.
type secrets struct {
	dir      string // holds the keystore
	ca       string
	password string
}

const keystoreFile = "keystore.pem"

// newSecrets makes the brokers' key and certificate, and the administrator's password.
func newSecrets(dir string) (*secrets, error) {
	ca, keystore, err := newCertificates()
	if err != nil {
		return nil, err
	}
	if err := write(dir, keystoreFile, keystore); err != nil {
		return nil, err
	}
	return &secrets{dir: dir, ca: ca, password: rand.Text()}, nil
}

// settings are the properties of a secured node. Brokers and controllers are known to each other as ANONYMOUS, on listeners
// that are neither encrypted nor asking for a name.
func (s *secrets) settings() []string {
	listener := "listener.name." + strings.ToLower(clientsListener) + "."
	return []string{
		"sasl.enabled.mechanisms=SCRAM-SHA-512",
		listener + "scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		listener + "ssl.keystore.type=PEM",
		listener + "ssl.keystore.location=" + filepath.Join(s.dir, keystoreFile),
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:" + adminName + ";User:ANONYMOUS",
		"allow.everyone.if.no.acl.found=false",
	}
}

// scram is the administrator, as a format's argument.
func (s *secrets) scram() string {
	return "SCRAM-SHA-512=[name=" + adminName + ",password=" + s.password + "]"
}

// newCertificates returns the certificate of a new issuer, and a keystore as Kafka reads it: a key for this machine's
// loopback names, followed by its certificate.
func newCertificates() (ca, keystore string, err error) {
	issuerKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	brokerKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	issuer := certificate(1, "test issuer")
	issuer.IsCA, issuer.BasicConstraintsValid, issuer.KeyUsage = true, true, x509.KeyUsageCertSign
	issuerDER, err := x509.CreateCertificate(rand.Reader, issuer, issuer, issuerKey.Public(), issuerKey)
	if err != nil {
		return "", "", err
	}
	broker := certificate(2, "test broker")
	broker.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	broker.DNSNames, broker.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	brokerDER, err := x509.CreateCertificate(rand.Reader, broker, issuer, brokerKey.Public(), issuerKey)
	if err != nil {
		return "", "", err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(brokerKey)
	if err != nil {
		return "", "", err
	}
	return block("CERTIFICATE", issuerDER), block("PRIVATE KEY", keyDER) + block("CERTIFICATE", brokerDER), nil
}

func certificate(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		// Clocks of a client in a container may differ a little.
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().AddDate(0, 1, 0),
	}
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
