// Command goload calls an admission webhook the way the API server does:
// net/http, TLS, HTTP/1.1 keep-alive, a pool of idle connections, a body that
// cannot be sent again. Standard library only.
//
//	goload -url https://127.0.0.1:9443/mutate -payloads payloads.ndjson -conns 8 -d 2s            as fast as the server answers
//	goload -url https://127.0.0.1:9443/mutate -payloads payloads.ndjson -conns 8 -d 5s -rate 300  at a fixed rate
//
// At a fixed rate latency runs from the moment a request was due, so a stalled
// server is charged for the requests that queue behind it. Prints one line of
// JSON: {"requests", "failed", "seconds", "p50", "p99", "last_error"}, the
// latencies in microseconds.
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// job is one request: which body, and when it was due.
type job struct {
	body int
	due  time.Time
}

// outcome is what one caller saw.
type outcome struct {
	latencies []time.Duration
	failed    int
	lastError string
}

type report struct {
	Requests  int     `json:"requests"`
	Failed    int     `json:"failed"`
	Seconds   float64 `json:"seconds"`
	P50       int64   `json:"p50"`
	P99       int64   `json:"p99"`
	LastError string  `json:"last_error"`
}

func main() {
	url := flag.String("url", "", "where to POST")
	file := flag.String("payloads", "payloads.ndjson", "bodies, one a line")
	rate := flag.Float64("rate", 0, "requests a second; 0 is as fast as answers come")
	conns := flag.Int("conns", 8, "callers, each with a connection of its own")
	duration := flag.Duration("d", 5*time.Second, "how long")
	flag.Parse()
	raw, err := os.ReadFile(*file)
	if err != nil {
		log.Fatal(err)
	}
	bodies := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	client := newClient(*conns)
	jobs := make(chan job, 1<<16)
	outcomes := make([]outcome, *conns)
	begin := time.Now()
	var callers sync.WaitGroup
	for i := range outcomes {
		callers.Go(func() { work(client, *url, bodies, jobs, &outcomes[i]) })
	}
	if *rate > 0 {
		feedAtRate(jobs, begin, *duration, *rate)
	} else {
		feedAtWill(jobs, begin, *duration, *conns)
	}
	close(jobs)
	callers.Wait()
	if err := json.NewEncoder(os.Stdout).Encode(summarize(outcomes, time.Since(begin))); err != nil {
		log.Fatal(err)
	}
}

func newClient(conns int) *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}},
		MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns, IdleConnTimeout: 90 * time.Second,
	}}
}

func work(client *http.Client, url string, bodies [][]byte, jobs <-chan job, seen *outcome) {
	for j := range jobs {
		begin := j.due
		if begin.IsZero() {
			begin = time.Now()
		}
		if err := call(client, url, bodies[j.body%len(bodies)]); err != nil {
			seen.failed++
			seen.lastError = err.Error()
			continue
		}
		seen.latencies = append(seen.latencies, time.Since(begin))
	}
}

func call(client *http.Client, url string, body []byte) error {
	// A reader type that net/http cannot rewind: as with a streamed body, no silent resend.
	req, err := http.NewRequest("POST", url, io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		return err
	}
	req.ContentLength = int64(len(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, */*")
	req.Header.Set("User-Agent", "kube-apiserver-admission")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

func feedAtRate(jobs chan<- job, begin time.Time, duration time.Duration, rate float64) {
	step := time.Duration(float64(time.Second) / rate)
	for i := 0; ; i++ {
		due := begin.Add(time.Duration(i) * step)
		if due.Sub(begin) >= duration {
			return
		}
		time.Sleep(time.Until(due))
		jobs <- job{i, due}
	}
}

func feedAtWill(jobs chan<- job, begin time.Time, duration time.Duration, conns int) {
	for i := 0; time.Since(begin) < duration; i++ {
		for len(jobs) >= 4*conns {
			time.Sleep(50 * time.Microsecond)
		}
		jobs <- job{body: i}
	}
}

func summarize(outcomes []outcome, took time.Duration) report {
	r := report{Seconds: took.Seconds(), P50: -1, P99: -1}
	var all []time.Duration
	for _, o := range outcomes {
		all = append(all, o.latencies...)
		r.Failed += o.failed
		if o.lastError != "" {
			r.LastError = o.lastError
		}
	}
	r.Requests = len(all)
	if len(all) > 0 {
		slices.Sort(all)
		r.P50 = all[len(all)/2].Microseconds()
		r.P99 = all[len(all)*99/100].Microseconds()
	}
	return r
}
