// Package loop is what every Go adapter shares: operations come in as lines, results go out as
// lines. An adapter gives Run a function that makes a client from the policy and one that sends
// an operation with it; each operation has a goroutine of its own.
package loop

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Op is one operation, with the policy of the run where it says nothing itself.
type Op struct {
	fields map[string]any
	Ctx    context.Context
}

// Reply is what an operation came to.
type Reply struct {
	Status int
	Body   []byte
}

// Text is a field as text; empty where it is absent.
func (o Op) Text(name string) string {
	switch value := o.fields[name].(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	default:
		return fmt.Sprint(value)
	}
}

// Number is a setting, or the library's own value.
func (o Op) Number(name string, otherwise float64) float64 {
	if value, err := strconv.ParseFloat(o.Text(name), 64); err == nil {
		return value
	}
	return otherwise
}

// Time is a setting in milliseconds, or the library's own value.
func (o Op) Time(name string, otherwise time.Duration) time.Duration {
	ms := o.Number(name, float64(otherwise)/float64(time.Millisecond))
	return time.Duration(ms * float64(time.Millisecond))
}

// Method of the operation.
func (o Op) Method() string {
	if method := o.Text("method"); method != "" {
		return method
	}
	return "GET"
}

// Body is the file of the body, nil where there is none.
func (o Op) Body() ([]byte, error) {
	if path := o.Text("body_file"); path != "" {
		return os.ReadFile(path)
	}
	return nil, nil
}

// SetHeaders adds the headers of every attempt, the key among them.
func (o Op) SetHeaders(header http.Header) {
	given := o.fields["headers"]
	if text, ok := given.(string); ok {
		_ = json.Unmarshal([]byte(text), &given)
	}
	pairs, _ := given.([]any)
	for _, pair := range pairs {
		if pair, ok := pair.([]any); ok && len(pair) == 2 {
			header.Add(fmt.Sprint(pair[0]), fmt.Sprint(pair[1]))
		}
	}
	if o.Text("key_mode") == "given" {
		header.Set("Idempotency-Key", o.Text("key"))
	}
}

// Dress makes the transport trust the given authority and speak the version asked for.
func (o Op) Dress(transport *http.Transport) {
	if o.Text("http") == "h2c" {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	if path := o.Text("ca_file"); path != "" {
		pool := x509.NewCertPool()
		if pem, err := os.ReadFile(path); err == nil {
			pool.AppendCertsFromPEM(pem)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
}

// Read takes the whole reply.
func Read(response *http.Response) (Reply, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return Reply{response.StatusCode, body}, err
}

// Version of a module of this build.
func Version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if strings.HasPrefix(dep.Path, module) {
			return dep.Version
		}
	}
	return ""
}

type client[C any] struct {
	once sync.Once
	made C
}

// Run reads lines until the end of input, then waits for what is under way.
func Run[C any](name, version string, make_ func(Op) C, send func(C, Op) (Reply, error)) {
	var policy map[string]any
	var print sync.Mutex
	var running sync.WaitGroup
	clients := map[string]*client[C]{}
	cancels := sync.Map{}
	say := func(line map[string]any) {
		text, _ := json.Marshal(line)
		print.Lock()
		defer print.Unlock()
		_, _ = os.Stdout.Write(append(text, '\n'))
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &fields); err != nil {
			panic(err)
		}
		said := Op{fields: fields}
		switch {
		case fields["hello"] != nil:
			policy = fields
			say(map[string]any{"ready": 1, "name": name, "version": version})
		case fields["cancel"] != nil:
			if cancel, ok := cancels.Load(said.Text("cancel")); ok {
				cancel.(context.CancelFunc)()
			}
		case fields["end"] != nil:
			delete(clients, said.Text("end"))
		case fields["op"] != nil:
			all := maps.Clone(policy)
			maps.Copy(all, fields)
			op := Op{fields: all}
			id := op.Text("client")
			if clients[id] == nil {
				clients[id] = &client[C]{}
			}
			shared := clients[id]
			var cancel context.CancelFunc
			if deadline := op.Time("deadline_ms", 0); deadline > 0 {
				op.Ctx, cancel = context.WithTimeout(context.Background(), deadline)
			} else {
				op.Ctx, cancel = context.WithCancel(context.Background())
			}
			cancels.Store(op.Text("op"), cancel)
			running.Add(1)
			go func() {
				defer running.Done()
				defer cancel()
				shared.once.Do(func() { shared.made = make_(op) })
				reply, err := send(shared.made, op)
				say(result(op, reply, err))
				cancels.Delete(op.Text("op"))
			}()
		}
	}
	running.Wait()
}

func result(op Op, reply Reply, err error) map[string]any {
	line := map[string]any{"op": op.Text("op"), "ok": false}
	if reply.Status != 0 {
		line["status"] = reply.Status
	}
	if op.Text("key_mode") == "given" {
		line["key"] = op.Text("key")
	}
	if err != nil {
		line["error"] = err.Error()
		return line
	}
	sum := sha256.Sum256(reply.Body)
	line["ok"] = reply.Status >= 200 && reply.Status < 300
	line["body_len"] = len(reply.Body)
	line["body_sha256"] = hex.EncodeToString(sum[:])
	return line
}
