// The main calls by a client that oapi-codegen made. Prints what came back, as one line of JSON.
package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"

	"generated/client"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	said := map[string]any{}
	key := func(_ context.Context, request *http.Request) error {
		request.Header.Set("authorization", "Bearer "+os.Getenv("KEY"))
		return nil
	}
	api, err := client.NewClientWithResponses(os.Getenv("ORIGIN"), client.WithRequestEditorFn(key))
	must(err)

	var content client.ChatMessage_Content
	must(content.FromChatMessageContent0("Hello"))
	model, limit := "demo/chat", 40
	asked := client.ChatCompletionRequest{
		Model:     &model,
		MaxTokens: &limit,
		Messages:  []client.ChatMessage{{Role: "user", Content: &content}},
	}
	chat, err := api.CreateChatCompletionWithResponse(ctx, nil, asked)
	must(err)
	said["chat"] = chat.JSON200.Choices[0].Message.Content
	said["prompt_tokens"] = chat.JSON200.Usage.PromptTokens

	models, err := api.ListModelsWithResponse(ctx, nil)
	must(err)
	list, err := models.JSON200.AsModelList()
	must(err)
	said["models"] = len(list.Data)

	image, err := hex.DecodeString(os.Getenv("PNG"))
	must(err)
	var form bytes.Buffer
	writer := multipart.NewWriter(&form)
	must(writer.WriteField("model", "demo/image"))
	must(writer.WriteField("prompt", "Lower the bar"))
	header := textproto.MIMEHeader{}
	header.Set("content-disposition", `form-data; name="image"; filename="toll.png"`)
	header.Set("content-type", "image/png")
	part, err := writer.CreatePart(header)
	must(err)
	_, err = part.Write(image)
	must(err)
	must(writer.Close())
	edited, err := api.EditImagesWithBodyWithResponse(ctx, nil, writer.FormDataContentType(), &form)
	must(err)
	said["edited"] = edited.JSON200.Images[0].Format

	balance, err := api.ShowYourBalanceWithResponse(ctx, nil)
	must(err)
	said["balance"] = balance.JSON200.BalanceUsd
	must(json.NewEncoder(os.Stdout).Encode(said))
}
