// Signs in at MCP_URL by OAuth, and calls a tool for each line of its input. Writes one line of JSON for each.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

var ctx = context.Background()

// signIn gets a token by the refresh token of the store, or else by the browser.
func signIn(handler *transport.OAuthHandler, store transport.TokenStore, listener net.Listener) error {
	if token, err := store.GetToken(ctx); err == nil && token.RefreshToken != "" {
		if _, err := handler.RefreshToken(ctx, token.RefreshToken); err == nil {
			return nil
		}
	}
	verifier, _ := client.GenerateCodeVerifier()
	state, _ := client.GenerateState()
	if handler.GetClientID() == "" {
		if err := handler.RegisterClient(ctx, "mcp-go"); err != nil {
			return err
		}
	}
	url, err := handler.GetAuthorizationURL(ctx, state, client.GenerateCodeChallenge(verifier))
	if err != nil {
		return err
	}
	answers := make(chan map[string]string, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		answers <- map[string]string{"code": query.Get("code"), "state": query.Get("state"), "error": query.Get("error")}
	})}
	go server.Serve(listener)
	if err := exec.Command("xdg-open", url).Run(); err != nil {
		return err
	}
	answer := <-answers
	if answer["error"] != "" {
		return fmt.Errorf("the answer of the sign-in is %s", answer["error"])
	}
	return handler.ProcessAuthorizationResponse(ctx, answer["code"], answer["state"], verifier)
}

func call(c *client.Client) (string, error) {
	initialize := mcp.InitializeRequest{}
	initialize.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	initialize.Params.ClientInfo = mcp.Implementation{Name: "mcp-go", Version: "1"}
	if _, err := c.Initialize(ctx, initialize); err != nil {
		return "", err
	}
	request := mcp.CallToolRequest{}
	request.Params.Name = "test_simple_text"
	result, err := c.CallTool(ctx, request)
	if err != nil {
		return "", err
	}
	return result.Content[0].(mcp.TextContent).Text, nil
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	store := client.NewMemoryTokenStore()
	config := client.OAuthConfig{
		RedirectURI: fmt.Sprintf("http://%s/callback", listener.Addr()),
		TokenStore:  store,
		PKCEEnabled: true,
	}
	c, err := client.NewOAuthStreamableHttpClient(os.Getenv("MCP_URL"), config)
	if err != nil {
		panic(err)
	}
	if err := c.Start(ctx); err != nil {
		panic(err)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		text, err := call(c)
		if client.IsOAuthAuthorizationRequiredError(err) {
			if err = signIn(client.GetOAuthHandler(err), store, listener); err == nil {
				text, err = call(c)
			}
		}
		said := map[string]string{"text": text}
		if err != nil {
			said["error"] = err.Error()
		}
		json.NewEncoder(os.Stdout).Encode(said)
	}
}
