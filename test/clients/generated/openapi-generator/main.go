// The main calls by a client that openapi-generator made for Go. Prints what came back, as one line of JSON.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"

	client "example.com/generated/client"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	said := map[string]any{}
	ctx := context.WithValue(context.Background(), client.ContextAccessToken, os.Getenv("KEY"))
	settings := client.NewConfiguration()
	settings.Servers = client.ServerConfigurations{{URL: os.Getenv("ORIGIN")}}
	api := client.NewAPIClient(settings)

	hello := "Hello"
	message := client.NewChatMessage("user")
	message.SetContent(client.ChatMessageContent{String: &hello})
	asked := client.NewChatCompletionRequest([]client.ChatMessage{*message})
	asked.SetModel("demo/chat")
	asked.SetMaxTokens(40)
	chat, _, err := api.ChatAPI.CreateChatCompletion(ctx).ChatCompletionRequest(*asked).Execute()
	must(err)
	said["chat"] = chat.Choices[0].Message.GetContent()
	said["prompt_tokens"] = chat.Usage.PromptTokens

	models, _, err := api.ModelsAPI.ListModels(ctx).Execute()
	must(err)
	said["models"] = len(models.ModelList.Data)

	image, err := hex.DecodeString(os.Getenv("PNG"))
	must(err)
	must(os.WriteFile("toll.png", image, 0o600))
	file, err := os.Open("toll.png")
	must(err)
	edited, _, err := api.ImagesAPI.EditImages(ctx).Model("demo/image").Prompt("Lower the bar").Image([]*os.File{file}).Execute()
	must(err)
	said["edited"] = edited.Images[0].GetFormat()

	balance, _, err := api.AccountAPI.ShowYourBalance(ctx).Execute()
	must(err)
	said["balance"] = balance.BalanceUsd
	must(json.NewEncoder(os.Stdout).Encode(said))
}
