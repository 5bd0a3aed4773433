// cenkalti/backoff round net/http, with the rules of its example: an error of the caller is
// permanent, a 429 is waited for as its Retry-After says, whatever else fails is tried again. It
// knows no methods.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"grid/loop"

	"github.com/cenkalti/backoff/v5"
)

func newClient(op loop.Op) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	op.Dress(transport)
	return &http.Client{Transport: transport, Timeout: op.Time("attempt_timeout_ms", 0)}
}

func send(client *http.Client, op loop.Op) (loop.Reply, error) {
	body, err := op.Body()
	if err != nil {
		return loop.Reply{}, err
	}
	attempt := func() (loop.Reply, error) {
		var reader io.Reader
		if body != nil {
			reader = bytes.NewReader(body)
		}
		request, err := http.NewRequestWithContext(op.Ctx, op.Method(), op.Text("url"), reader)
		if err != nil {
			return loop.Reply{}, backoff.Permanent(err)
		}
		op.SetHeaders(request.Header)
		response, err := client.Do(request)
		if err != nil {
			return loop.Reply{}, err
		}
		reply, err := loop.Read(response)
		if err != nil {
			return loop.Reply{}, err
		}
		return reply, judge(response)
	}
	// Its first interval is drawn from half to one and a half times of it: base to three times base.
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval = 2 * op.Time("base_ms", pace.InitialInterval/2)
	return backoff.Retry(op.Ctx, attempt, backoff.WithBackOff(pace),
		backoff.WithMaxTries(uint(op.Number("attempts", 4))), backoff.WithMaxElapsedTime(15*time.Minute))
}

func judge(response *http.Response) error {
	failed := fmt.Errorf("status %s", response.Status)
	switch status := response.StatusCode; {
	case status == 429:
		if seconds, err := strconv.ParseInt(response.Header.Get("Retry-After"), 10, 64); err == nil {
			return backoff.RetryAfter(int(seconds))
		}
		return failed
	case status >= 400 && status < 500:
		return backoff.Permanent(failed)
	case status >= 500:
		return failed
	}
	return nil
}

func main() {
	loop.Run("cenkalti/backoff", loop.Version("github.com/cenkalti/backoff"), newClient, send)
}
