// Somebody else's replication, in Go: three nodes in one process, a fixed leader, a log of its own. It knows nothing of
// Viewproof; it writes the same words as replica.py, so that the same adapter reads it.
//
//	go run replica.go FILE [SEED] [--hasty]
//
// --hasty is a mistake: the leader does not wait for a majority.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
)

const (
	nodes    = 3
	majority = 2
	clients  = 2
	requests = 6
)

type entry struct {
	client, number int
	prev, hash     string
}

type message struct {
	kind                        string
	from, line, time, op, known int
	entry                       entry
}

type node struct {
	world               *world
	number, time, lines int
	log                 []entry
	applied, known      int
	sum                 string
	votes               map[int]map[int]bool
}

type link struct{ from, to int }

type world struct {
	random *rand.Rand
	hasty  bool
	out    *bufio.Writer
	nodes  []*node
	order  []link
	links  map[link][]message
	done   map[int]int
}

func digest(parts ...any) string {
	words := make([]string, len(parts))
	for i, part := range parts {
		words[i] = fmt.Sprint(part)
	}
	sum := sha256.Sum256([]byte(strings.Join(words, "|")))
	return hex.EncodeToString(sum[:])[:12]
}

func (n *node) head() string {
	if len(n.log) == 0 {
		return "-"
	}
	return n.log[len(n.log)-1].hash
}

// note writes one line; seen is the time of the message that it is about.
func (n *node) note(what string, seen int, more string) message {
	n.time = max(n.time, seen) + 1
	n.lines++
	own := fmt.Sprintf("top=%d head=%s applied=%d known=%d sum=%s", len(n.log), n.head(), n.applied, n.known, n.sum)
	fmt.Fprintf(n.world.out, "%d node%d %d %s %s %s\n", n.time, n.number, n.lines, what, more, own)
	return message{from: n.number, line: n.lines, time: n.time}
}

func (e entry) String() string {
	return fmt.Sprintf("client=%d number=%d prev=%s hash=%s", e.client, e.number, e.prev, e.hash)
}

func (n *node) ask(client, number int) {
	e := entry{client, number, n.head(), digest(client, number, n.head())}
	n.log = append(n.log, e)
	sent := n.note("asked", 0, fmt.Sprintf("op=%d %v", len(n.log), e))
	sent.kind, sent.op, sent.known, sent.entry = "entry", len(n.log), n.known, e
	n.world.send(sent)
	n.keep()
}

func (n *node) keep() {
	op := len(n.log)
	n.note("kept", 0, fmt.Sprintf("op=%d", op))
	vote := n.note("voted", 0, fmt.Sprintf("op=%d hash=%s", op, n.head()))
	if n.number == 0 {
		n.vote(0, op)
		return
	}
	vote.kind, vote.op, vote.entry.hash = "vote", op, n.head()
	n.world.send(vote)
}

func (n *node) take(m message) {
	via := fmt.Sprintf("via=%d:%d", m.from, m.line)
	switch m.kind {
	case "entry":
		n.log = append(n.log, m.entry)
		n.known = max(n.known, m.known)
		n.note("took", m.time, fmt.Sprintf("op=%d %s told=%d %v", m.op, via, m.known, m.entry))
		n.keep()
		n.apply()
	case "vote":
		n.note("counted", m.time, fmt.Sprintf("op=%d %s hash=%s", m.op, via, m.entry.hash))
		n.vote(m.from, m.op)
	case "known":
		if m.known > n.known && m.known <= len(n.log) {
			n.known = m.known
			n.note("heard", m.time, fmt.Sprintf("told=%d %s", m.known, via))
			n.apply()
		}
	}
}

func (n *node) vote(from, op int) {
	if n.votes[op] == nil {
		n.votes[op] = map[int]bool{}
	}
	n.votes[op][from] = true
	need := majority
	if n.world.hasty {
		need = 1
	}
	for len(n.votes[n.known+1]) >= need {
		n.known++
		n.note("agreed", 0, fmt.Sprintf("op=%d", n.known))
		n.apply()
		told := n.note("tells", 0, fmt.Sprintf("told=%d", n.known))
		told.kind, told.known = "known", n.known
		n.world.send(told)
	}
}

func (n *node) apply() {
	for n.applied < min(n.known, len(n.log)) {
		e := n.log[n.applied]
		n.applied++
		n.sum = digest(n.sum, e.hash)
		n.note("applied", 0, fmt.Sprintf("op=%d answer=%s %v", n.applied, digest("answer", n.applied, e.hash), e))
		if n.number == 0 {
			n.world.done[e.client] = e.number
		}
	}
}

func (w *world) send(m message) {
	for to := 0; to < nodes; to++ {
		if to == m.from || (m.from != 0 && to != 0) {
			continue
		}
		w.links[link{m.from, to}] = append(w.links[link{m.from, to}], m)
	}
}

func (w *world) run() {
	asked := map[int]int{}
	for _, n := range w.nodes {
		n.note("up", 0, fmt.Sprintf("nodes=%d majority=%d", nodes, majority))
	}
	for {
		var choices []func()
		for client := 1; client <= clients; client++ {
			if asked[client] == w.done[client] && asked[client] < requests {
				choices = append(choices, func() { asked[client]++; w.nodes[0].ask(client, asked[client]) })
			}
		}
		for _, l := range w.order {
			if len(w.links[l]) > 0 {
				choices = append(choices, func() {
					m := w.links[l][0]
					w.links[l] = w.links[l][1:]
					w.nodes[l.to].take(m)
				})
			}
		}
		if len(choices) == 0 {
			return
		}
		choices[w.random.Intn(len(choices))]()
	}
}

func main() {
	var words []string
	w := &world{links: map[link][]message{}, done: map[int]int{}}
	for _, word := range os.Args[1:] {
		if word == "--hasty" {
			w.hasty = true
		} else {
			words = append(words, word)
		}
	}
	seed := 0
	if len(words) > 1 {
		seed, _ = strconv.Atoi(words[1])
	}
	w.random = rand.New(rand.NewSource(int64(seed)))
	file, err := os.Create(words[0])
	if err != nil {
		panic(err)
	}
	w.out = bufio.NewWriter(file)
	fmt.Fprintln(w.out, "# toy 1.0")
	for number := 0; number < nodes; number++ {
		w.nodes = append(w.nodes, &node{world: w, number: number, sum: digest("empty"), votes: map[int]map[int]bool{}})
		for other := 0; other < nodes; other++ {
			if other != number {
				w.order = append(w.order, link{number, other})
			}
		}
	}
	w.run()
	if err := w.out.Flush(); err != nil {
		panic(err)
	}
}
