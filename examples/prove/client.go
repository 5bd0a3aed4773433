// A retrying net/http client, and its adapter for `ressac prove`: go run client.go
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// ------------------------------------------------------------- the client

var retryable = map[int]bool{429: true, 502: true, 503: true, 504: true}
var idempotent = map[string]bool{"GET": true, "HEAD": true, "PUT": true, "DELETE": true}

type told struct {
	Hello    int         `json:"hello"`
	Op       string      `json:"op"`
	Client   string      `json:"client"`
	URL      string      `json:"url"`
	Method   string      `json:"method"`
	Headers  [][2]string `json:"headers"`
	BodyFile string      `json:"body_file"`
	Key      string      `json:"key"`
	Safe     string      `json:"safe"`
	Attempts int         `json:"attempts"`
	BaseMs   float64     `json:"base_ms"`
	CapMs    float64     `json:"cap_ms"`
}

type result struct {
	Op         string `json:"op"`
	OK         bool   `json:"ok"`
	Status     int    `json:"status,omitempty"`
	Attempts   int    `json:"attempts"`
	BodyLen    *int   `json:"body_len,omitempty"`
	BodySha256 string `json:"body_sha256,omitempty"`
	Error      string `json:"error,omitempty"`
}

// A year is as good as for ever, and does not overflow.
const longest = 365 * 24 * time.Hour

func hint(reply *http.Response) time.Duration {
	value := reply.Header.Get("Retry-After")
	seconds, err := strconv.ParseUint(value, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(longest/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return -1
	}
	now, err := http.ParseTime(reply.Header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return min(max(0, at.Sub(now)), longest)
}

func send(client *http.Client, op told, pace told) result {
	attempts := max(1, pace.Attempts)
	var body []byte
	if op.BodyFile != "" {
		body, _ = os.ReadFile(op.BodyFile)
	}
	repeatable := idempotent[op.Method] || op.Safe == "1" || op.Key != ""
	for attempt := 1; ; attempt++ {
		out := result{Op: op.Op, Attempts: attempt}
		again, wanted := repeatable, time.Duration(-1)
		request, err := http.NewRequest(op.Method, op.URL, bytes.NewReader(body))
		if err != nil {
			out.Error = err.Error()
			return out
		}
		for _, header := range op.Headers {
			request.Header.Add(header[0], header[1])
		}
		if op.Key != "" {
			request.Header.Set("Idempotency-Key", op.Key)
		}
		reply, err := client.Do(request)
		if err == nil {
			var data []byte
			data, err = io.ReadAll(reply.Body)
			reply.Body.Close()
			length, sum := len(data), sha256.Sum256(data)
			out.Status, out.BodyLen, out.BodySha256 = reply.StatusCode, &length, hex.EncodeToString(sum[:])
			out.OK = err == nil && reply.StatusCode/100 == 2
			if err == nil {
				again, wanted = again && retryable[reply.StatusCode], hint(reply)
			}
		}
		if err != nil {
			out.Error = err.Error()
		}
		if out.OK || !again || attempt >= attempts {
			return out
		}
		ceiling := math.Min(pace.CapMs, pace.BaseMs*math.Pow(2, float64(attempt-1)))
		spread := math.Max(ceiling, float64(wanted.Milliseconds()))
		time.Sleep(max(wanted, 0) + time.Duration(rand.Float64()*spread)*time.Millisecond)
	}
}

// ------------------------------------------------------------ the adapter

func main() {
	var mutex sync.Mutex
	say := func(line any) {
		text, _ := json.Marshal(line)
		mutex.Lock()
		defer mutex.Unlock()
		fmt.Println(string(text))
	}
	clients := map[string]*http.Client{}
	pace := told{Attempts: 4, BaseMs: 500, CapMs: 30000}
	var running sync.WaitGroup
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := pace
		line.Hello, line.Op = 0, ""
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		if line.Hello == 1 {
			pace = line
			say(map[string]any{"ready": 1, "name": "go-example", "version": "1"})
		} else if line.Op != "" {
			client, known := clients[line.Client]
			if !known {
				client = &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
				clients[line.Client] = client
			}
			running.Add(1)
			go func() {
				defer running.Done()
				say(send(client, line, pace))
			}()
		}
	}
	finished := make(chan struct{})
	go func() { running.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-time.After(time.Second):
	}
}
