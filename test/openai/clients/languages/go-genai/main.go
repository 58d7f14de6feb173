// Google's SDK for Go, with the address and the key alone.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"google.golang.org/genai"
)

func main() {
	ctx := context.Background()
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey:      os.Getenv("KEY"),
		Backend:     genai.BackendGeminiAPI,
		HTTPOptions: genai.HTTPOptions{BaseURL: os.Getenv("BASE_URL")},
	})
	check(err)
	said := map[string]any{}

	whole, err := client.Models.GenerateContent(ctx, "test/model", genai.Text("hello !tokens:4"), nil)
	check(err)
	said["whole"] = whole.Text()

	text, finish := "", genai.FinishReason("")
	var tokens int32
	for event, err := range client.Models.GenerateContentStream(ctx, "test/model", genai.Text("hello !tokens:4"), nil) {
		check(err)
		text += event.Text()
		finish = event.Candidates[0].FinishReason
		if event.UsageMetadata != nil {
			tokens = event.UsageMetadata.CandidatesTokenCount
		}
	}
	said["streamed"], said["finish"], said["completionTokens"] = text, finish, tokens

	// The gateway keeps the silent stream alive.
	words := ""
	for event, err := range client.Models.GenerateContentStream(ctx, "test/model", genai.Text("hello !tokens:4 !token-ms:300"), nil) {
		check(err)
		words += event.Text()
	}
	said["afterSilence"] = words

	_, err = client.Models.GenerateContent(ctx, "test/none", genai.Text("hello"), nil)
	var failure genai.APIError
	said["isApiError"] = errors.As(err, &failure)
	said["code"], said["status"] = failure.Status, failure.Code

	check(json.NewEncoder(os.Stdout).Encode(said))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
