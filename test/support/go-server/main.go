// A provider of all three protocols as people write it in Go: plain structs and encoding/json. Field names match without regard to case there, and of
// members that fold to one name the last one counts. What it obeyed is told at GET /obeyed, as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
)

type obeyed struct {
	Chat  []chat   `json:"chat"`
	Tools []string `json:"tools"`
	Sends []send   `json:"sends"`
}

type chat struct {
	Model     string `json:"model"`
	MaxTokens int    `json:"max_tokens"`
	N         int    `json:"n"`
	Stream    bool   `json:"stream"`
}

type call struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

type toolParams struct {
	Name string `json:"name"`
}

type send struct {
	TaskID    string `json:"taskId"`
	ContextID string `json:"contextId"`
	MessageID string `json:"messageId"`
}

type sendParams struct {
	Message send `json:"message"`
}

var (
	mutex sync.Mutex
	did   = obeyed{Chat: []chat{}, Tools: []string{}, Sends: []send{}}
)

func note(change func()) {
	mutex.Lock()
	defer mutex.Unlock()
	change()
}

func write(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(value)
}

type object = map[string]any

func completions(w http.ResponseWriter, r *http.Request) {
	var asked chat
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	note(func() { did.Chat = append(did.Chat, asked) })
	write(w, object{
		"id": "c", "object": "chat.completion", "created": 1, "model": asked.Model,
		"choices": []object{{"index": 0, "message": object{"role": "assistant", "content": "ok"}, "finish_reason": "stop"}},
		"usage":   object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
	})
}

func tools(w http.ResponseWriter, r *http.Request) {
	if r.Method != "POST" {
		http.Error(w, "POST alone", 405)
		return
	}
	var asked call
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	var result any
	switch asked.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "s")
		result = object{"protocolVersion": "2025-11-25", "capabilities": object{"tools": object{}, "logging": object{}}, "serverInfo": object{"name": "go", "version": "1"}}
	case "tools/list":
		result = object{"tools": []object{{"name": "cheap", "inputSchema": object{"type": "object"}}, {"name": "dear", "inputSchema": object{"type": "object"}}}}
	case "tools/call":
		var params toolParams
		json.Unmarshal(asked.Params, &params)
		note(func() { did.Tools = append(did.Tools, params.Name) })
		result = object{"content": []object{{"type": "text", "text": params.Name}}}
	case "server/discover":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(400)
		json.NewEncoder(w).Encode(object{"jsonrpc": "2.0", "id": asked.ID, "error": object{"code": -32601, "message": "Method not found"}})
		return
	default:
		result = object{}
	}
	if len(asked.ID) == 0 {
		w.WriteHeader(202)
		return
	}
	write(w, object{"jsonrpc": "2.0", "id": asked.ID, "result": result})
}

func agent(w http.ResponseWriter, r *http.Request) {
	if r.Method == "GET" {
		url := "http://" + r.Host + "/agent"
		write(w, object{
			"name": "go", "description": "go", "version": "1", "protocolVersion": "0.3.0", "url": url, "preferredTransport": "JSONRPC",
			"capabilities": object{}, "defaultInputModes": []string{"text"}, "defaultOutputModes": []string{"text"},
			"skills": []object{{"id": "s", "name": "s", "description": "s", "tags": []string{}}},
		})
		return
	}
	var asked call
	var params sendParams
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	json.Unmarshal(asked.Params, &params)
	note(func() { did.Sends = append(did.Sends, params.Message) })
	write(w, object{"jsonrpc": "2.0", "id": asked.ID, "result": object{
		"kind": "message", "messageId": "reply", "role": "agent", "parts": []object{{"kind": "text", "text": "ok"}},
	}})
}

func main() {
	http.HandleFunc("/v1/chat/completions", completions)
	http.HandleFunc("/mcp", tools)
	http.HandleFunc("/agent", agent)
	http.HandleFunc("/agent/.well-known/agent-card.json", agent)
	http.HandleFunc("/obeyed", func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		write(w, did)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	http.Serve(listener, nil)
}
