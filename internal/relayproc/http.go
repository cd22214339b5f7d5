package relayproc

import (
	"errors"
	"io"
	"net/http"
	"regexp"
)

var addressLine = regexp.MustCompile(`"address":"([^"]+)"`)

// Get asks the relay's HTTP side.
func (p *Process) Get(path string) (status int, body string) {
	p.t.Helper()
	var address string
	Until(p.t, "the HTTP address in the log", func() error {
		match := addressLine.FindStringSubmatch(p.Log.String())
		if match == nil {
			return errors.New("not there")
		}
		address = match[1]
		return nil
	})
	resp, err := http.Get("http://" + address + path)
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
