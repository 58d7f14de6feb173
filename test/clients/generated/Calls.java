// The main calls by a client that openapi-generator made for Java. Prints what came back, a line for each.

import java.io.FileInputStream;
import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.*;
import org.openapitools.client.model.*;

public class Calls {
    private static ApiClient clientWith(String key) {
        ApiClient client = new ApiClient();
        client.setBasePath(System.getenv("ORIGIN"));
        client.setBearerToken(key);
        client.setReadTimeout(60_000);
        return client;
    }

    private static void say(String name, Object value) {
        System.out.println(name + "=" + value);
    }

    public static void main(String[] args) throws Exception {
        ApiClient client = clientWith(System.getenv("KEY"));
        ChatApi chat = new ChatApi(client);
        ChatMessage hello = new ChatMessage().role(ChatMessage.RoleEnum.USER).content(new ChatMessageContent("Hello"));

        ChatCompletionRequest asked = new ChatCompletionRequest().model("demo/chat").messages(List.of(hello)).maxTokens(40);
        ChatCompletion completion = chat.createChatCompletion(asked, null, null, null, null, null, null, null);
        say("chat", completion.getChoices().get(0).getMessage().getContent());
        say("prompt_tokens", completion.getUsage().getPromptTokens());
        try {
            chat.createChatCompletion(asked.model("none/such"), null, null, null, null, null, null, null);
        } catch (ApiException refused) {
            say("error", refused.getCode());
        }

        ResponseRequest input = new ResponseRequest().model("demo/chat").input(new ResponseRequestInput("Hello"));
        say("response", chat.createResponse(input, null, null, null, null, null, null, null).getStatus());

        MessageTurn turn = new MessageTurn().role(MessageTurn.RoleEnum.USER).content(new MessageTurnContent("Hello"));
        MessageRequest told = new MessageRequest().model("demo/chat").maxTokens(40).messages(List.of(turn));
        say("message", chat.createMessage(told, null, null, null, null, null, null, null).getContent().get(0).getText());

        ModelList models =
                new ModelsApi(client).listModels(null, null, null, null, null, null, null, null, null).getModelList();
        say("models", models.getData().size());

        // What the generator writes cannot read a list of numbers that might also be a text.
        EmbeddingsRequest text = new EmbeddingsRequest().model("demo/embedding").input(new EmbeddingsRequestInput("Hello"))
                .encodingFormat(EmbeddingsRequest.EncodingFormatEnum.BASE64);
        Embeddings vectors = chat.createEmbeddings(text, null, null, null, null, null, null, null);
        say("embedding", vectors.getData().get(0).getEmbedding().getString().length());

        ImageRequest picture = new ImageRequest().model("demo/image").prompt("A bridge");
        GeneratedImages painted = new ImagesApi(client).generateImages(picture, null, null, null, null, null, null, null);
        say("image", painted.getImages().get(0).getFormat());

        VideosApi videos = new VideosApi(client);
        VideoRequest film = new VideoRequest().model("demo/video").prompt("A gate").duration(new VideoDuration("2s"));
        String id = videos.queueVideo(film, null, null, null, null, null, null, null).getId();
        Video video = videos.showVideo(id, null).getVideo();
        for (int turns = 0; turns < 600 && video.getStatus() != Video.StatusEnum.COMPLETED; turns++) {
            Thread.sleep(100);
            video = videos.showVideo(id, null).getVideo();
        }
        say("video", video.getStatus());
        try (FileInputStream file = new FileInputStream(videos.fetchVideo(id, null, null, null))) {
            say("film", new String(file.readNBytes(8), 4, 4));
        }

        AccountApi account = new AccountApi(client);
        NewKey made = account.createAKey(new NewKeyRequest().name("generated"), null);
        say("key", new AccountApi(clientWith(made.getKey())).showTheKeyInUse(null).getData().getLabel());
        say("key_deleted", account.deleteAKey(made.getData().getHash(), null).getDeleted());
        say("balance", account.showYourBalance(null).getBalanceUsd());
    }
}
