// Command stub is an engine that behaves as its first argument says, at the address in its second.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	mode, address := os.Args[1], os.Args[2]
	fmt.Println("first line of", mode)
	fmt.Fprintln(os.Stderr, "key is", os.Getenv("ENGINE_KEY"))
	switch mode {
	case "die-at-once":
		for i := range 60 {
			fmt.Println("reason", i)
		}
		os.Exit(3)
	case "sleep":
		time.Sleep(time.Hour)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "parent":
		child := exec.Command(os.Args[0], "sleep", "-")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		fmt.Println("child", child.Process.Pid)
	}
	var chats atomic.Int64
	http.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		if mode == "never-ready" {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"error":{"message":"loading forever"}}`)
			return
		}
		fmt.Fprint(w, `{"data":[{"id":"stub"}]}`)
	})
	http.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Model     string `json:"model"`
			MaxTokens int    `json:"max_tokens"`
		}
		json.NewDecoder(r.Body).Decode(&asked)
		n := chats.Add(1)
		fmt.Println("chat", n, asked.Model, asked.MaxTokens)
		switch {
		case mode == "no-token":
			http.Error(w, `{"error":{"message":"no token today"}}`, http.StatusInternalServerError)
			return
		case mode == "die-midway" && n == 2:
			fmt.Println("giving up")
			os.Exit(7)
		}
		fmt.Fprint(w, `{"choices":[{"message":{"content":"x"}}]}`)
	})
	if err := http.ListenAndServe(address, nil); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
