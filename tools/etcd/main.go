// A member of an etcd cluster, or a load of puts on one: what benchmarks/etcd.py measures ours next to.
//
//	program member OPTIONS...                                        etcd itself, with its own options
//	program load ENDPOINTS CLIENTS BYTES WARM-UP-SECONDS SECONDS     prints one JSON object
//
// Each client has one put outstanding. All share as many connections as there are endpoints, and talk to the leader.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

type result struct {
	Requests int     `json:"requests"`
	Failed   int     `json:"failed"`
	Rate     float64 `json:"requests_per_second"`
	Median   float64 `json:"latency_ms_median"`
	P99      float64 `json:"latency_ms_99"`
}

// leader finds the endpoint of the member that leads.
func leader(client *clientv3.Client, endpoints []string) (string, error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		for _, endpoint := range endpoints {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			status, err := client.Status(ctx, endpoint)
			cancel()
			if err == nil && status.Leader != 0 && status.Leader == status.Header.MemberId {
				return endpoint, nil
			}
		}
	}
	return "", fmt.Errorf("no leader within a minute")
}

func load(endpoints []string, clients, size int, warmUp, seconds time.Duration) (result, error) {
	all, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: time.Minute})
	if err != nil {
		return result{}, err
	}
	endpoint, err := leader(all, endpoints)
	if err != nil {
		return result{}, err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: time.Minute})
	if err != nil {
		return result{}, err
	}
	begin := time.Now().Add(warmUp)
	end := begin.Add(seconds)
	value := strings.Repeat("x", size)
	latencies := make([][]time.Duration, clients)
	failed := make([]int, clients)
	var wait sync.WaitGroup
	for number := range clients {
		wait.Add(1)
		go func() {
			defer wait.Done()
			key := fmt.Sprintf("bench-%d", number)
			for {
				called := time.Now()
				if called.After(end) {
					return
				}
				_, err := client.Put(context.Background(), key, value)
				if err != nil {
					failed[number]++
				} else if called.After(begin) {
					latencies[number] = append(latencies[number], time.Since(called))
				}
			}
		}()
	}
	wait.Wait()
	elapsed := time.Since(begin).Seconds()
	var found result
	var sorted []time.Duration
	for number := range clients {
		sorted = append(sorted, latencies[number]...)
		found.Failed += failed[number]
	}
	sort.Slice(sorted, func(a, b int) bool { return sorted[a] < sorted[b] })
	found.Requests = len(sorted)
	found.Rate = float64(len(sorted)) / elapsed
	if len(sorted) > 0 {
		found.Median = sorted[len(sorted)/2].Seconds() * 1e3
		found.P99 = sorted[len(sorted)*99/100].Seconds() * 1e3
	}
	return found, nil
}

func run(words []string) error {
	if len(words) != 5 {
		return fmt.Errorf("expected ENDPOINTS CLIENTS BYTES WARM-UP-SECONDS SECONDS")
	}
	numbers := make([]float64, 4)
	for index, word := range words[1:] {
		number, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return err
		}
		numbers[index] = number
	}
	warmUp, seconds := time.Duration(numbers[2]*1e9), time.Duration(numbers[3]*1e9)
	found, err := load(strings.Split(words[0], ","), int(numbers[0]), int(numbers[1]), warmUp, seconds)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "member" {
		etcdmain.Main(append(os.Args[:1], os.Args[2:]...))
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "load" {
		if err := run(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		return
	}
	fmt.Fprintln(os.Stderr, "expected: member OPTIONS, or load ENDPOINTS CLIENTS BYTES WARM-UP-SECONDS SECONDS")
	os.Exit(2)
}
