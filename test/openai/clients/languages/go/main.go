// Chat by go-openai, with the address and the key alone.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	openai "github.com/sashabaranov/go-openai"
)

func main() {
	config := openai.DefaultConfig(os.Getenv("KEY"))
	config.BaseURL = os.Getenv("BASE_URL")
	client := openai.NewClientWithConfig(config)
	ctx := context.Background()
	ask := func(model, text string) openai.ChatCompletionRequest {
		return openai.ChatCompletionRequest{
			Model:         model,
			Messages:      []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: text}},
			StreamOptions: nil,
		}
	}
	said := map[string]any{}

	whole, err := client.CreateChatCompletion(ctx, ask("test/model", "hello !tokens:4"))
	check(err)
	said["whole"] = whole.Choices[0].Message.Content

	asked := ask("test/model", "hello !tokens:4")
	asked.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	text, finish, usage, err := streamed(ctx, client, asked)
	check(err)
	said["streamed"], said["finish"], said["completionTokens"] = text, finish, usage

	_, _, _, err = streamed(ctx, client, ask("test/model", "hello !tokens:40 !cut:2500"))
	said["broken"] = err != nil

	_, err = client.CreateChatCompletion(ctx, ask("test/none", "hello"))
	var failed *openai.APIError
	if errors.As(err, &failed) {
		said["code"], said["status"] = failed.Code, failed.HTTPStatusCode
	}
	check(json.NewEncoder(os.Stdout).Encode(said))
}

func streamed(ctx context.Context, client *openai.Client, asked openai.ChatCompletionRequest) (string, string, int, error) {
	stream, err := client.CreateChatCompletionStream(ctx, asked)
	if err != nil {
		return "", "", 0, err
	}
	defer stream.Close()
	text, finish, tokens := "", "", 0
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return text, finish, tokens, nil
		}
		if err != nil {
			return text, finish, tokens, err
		}
		if chunk.Usage != nil {
			tokens = chunk.Usage.CompletionTokens
		}
		for _, choice := range chunk.Choices {
			text += choice.Delta.Content
			if choice.FinishReason != "" {
				finish = string(choice.FinishReason)
			}
		}
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
