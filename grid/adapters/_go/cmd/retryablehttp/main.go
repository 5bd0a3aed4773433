// go-retryablehttp, its default client, with the error handler that passes the last reply through.
package main

import (
	"net/http"
	"os"

	"grid/loop"

	"github.com/hashicorp/go-retryablehttp"
)

func newClient(op loop.Op) *retryablehttp.Client {
	client := retryablehttp.NewClient()
	client.Logger = nil
	client.RetryMax = int(op.Number("attempts", 5)) - 1
	client.RetryWaitMin = op.Time("base_ms", client.RetryWaitMin)
	client.RetryWaitMax = op.Time("cap_ms", client.RetryWaitMax)
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	client.HTTPClient.Timeout = op.Time("attempt_timeout_ms", 0)
	op.Dress(client.HTTPClient.Transport.(*http.Transport))
	return client
}

func send(client *retryablehttp.Client, op loop.Op) (loop.Reply, error) {
	// An io.Reader is read into memory at once, as its documentation says.
	var body any
	if path := op.Text("body_file"); path != "" {
		file, err := os.Open(path)
		if err != nil {
			return loop.Reply{}, err
		}
		defer file.Close()
		body = file
	}
	request, err := retryablehttp.NewRequestWithContext(op.Ctx, op.Method(), op.Text("url"), body)
	if err != nil {
		return loop.Reply{}, err
	}
	op.SetHeaders(request.Header)
	response, err := client.Do(request)
	if err != nil {
		return loop.Reply{}, err
	}
	return loop.Read(response)
}

func main() {
	version := loop.Version("github.com/hashicorp/go-retryablehttp")
	loop.Run("go-retryablehttp", version, newClient, send)
}
