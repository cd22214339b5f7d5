package relayproc

import (
	"errors"
	"io"
	"net/http"
	"regexp"
)

var addressLine = regexp.MustCompile(`"address":"([^"]+)"`)

// Address is where the relay serves HTTP.
func (p *Process) Address() (address string) {
	p.t.Helper()
	Until(p.t, "the HTTP address in the log", func() error {
		match := addressLine.FindStringSubmatch(p.Log.String())
		if match == nil {
			return errors.New("not there")
		}
		address = match[1]
		return nil
	})
	return address
}

// Get asks the relay's HTTP side.
func (p *Process) Get(path string) (status int, body string) {
	p.t.Helper()
	resp, err := http.Get("http://" + p.Address() + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(content)
}
