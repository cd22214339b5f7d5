package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// cluster is the server that a process's tests share. Several processes may share it at the same time.
type cluster struct {
	server *url.URL
	owner  *owner
	last   atomic.Int64 // number of the last name that was given

	mu        sync.Mutex
	templates map[string]*template // by Setup.Name
	roles     map[string][]string  // by the database that they are dropped with
}

// template is a database that others are copied from.
type template struct {
	once sync.Once
	name string
	err  error
}

func openCluster() (*cluster, error) {
	// Nothing stops it: no test is the process's last. A server of our own ends with the process.
	address, _, err := Start(context.Background())
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(address)
	if err != nil || server.Scheme == "" || server.Host == "" {
		return nil, fmt.Errorf("%s is no URL of the form postgres://user:password@host:port/database", Variable)
	}
	c := &cluster{server: server, templates: map[string]*template{}, roles: map[string][]string{}}
	c.owner, err = takeOwner(c.url("postgres", nil))
	return c, err
}

// url returns the address of a database, for the superuser if user is nil.
func (c *cluster) url(database string, user *url.Userinfo) string {
	address := *c.server
	address.Path = "/" + database
	if user != nil {
		address.User = user
	}
	return address.String()
}

// name returns a name that nothing on the server has. The owner in it tells whose it is.
func (c *cluster) name() string { return fmt.Sprintf("%s%d", c.owner.prefix, c.last.Add(1)) }

// create makes a database from setup's template, which it makes first if need be.
func (c *cluster) create(setup Setup) (string, error) {
	c.mu.Lock()
	source, known := c.templates[setup.Name]
	if !known {
		source = &template{}
		c.templates[setup.Name] = source
	}
	c.mu.Unlock()

	source.once.Do(func() { source.name, source.err = c.fill(setup) })
	if source.err != nil {
		return "", source.err
	}
	name := c.name()
	return name, c.admin("CREATE DATABASE " + quote(name) + " TEMPLATE " + quote(source.name))
}

// fill makes the database that setup describes, and closes it: a copy needs a source without connections.
func (c *cluster) fill(setup Setup) (string, error) {
	name := c.name()
	if err := c.admin("CREATE DATABASE " + quote(name) + " TEMPLATE template0"); err != nil {
		return "", err
	}
	if setup.Apply != nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := setup.Apply(ctx, c.url(name, nil)); err != nil {
			return "", fmt.Errorf("set up: %w", err)
		}
	}
	return name, c.admin("ALTER DATABASE " + quote(name) + " ALLOW_CONNECTIONS false")
}

// drop removes a database, and then the roles that it held privileges of.
func (c *cluster) drop(name string) error {
	c.mu.Lock()
	roles := c.roles[name]
	delete(c.roles, name)
	c.mu.Unlock()

	err := c.admin("DROP DATABASE IF EXISTS " + quote(name) + " WITH (FORCE)")
	for _, role := range roles {
		err = errors.Join(err, c.admin("DROP ROLE IF EXISTS "+quote(role)))
	}
	return err
}

func (c *cluster) admin(sql string) error {
	_, err := execute(c.url("postgres", nil), sql)
	return err
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// password is for servers that ask for one; it goes into a statement and a URL as it is.
func password() string { return strings.ToLower(rand.Text()) }
