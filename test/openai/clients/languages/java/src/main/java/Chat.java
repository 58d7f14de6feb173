import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.errors.OpenAIServiceException;
import com.openai.helpers.ChatCompletionAccumulator;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.chat.completions.ChatCompletionStreamOptions;

/** Chat by openai-java, with the address and the key alone. */
public final class Chat {
    public static void main(String[] arguments) {
        OpenAIClient client = OpenAIOkHttpClient.builder()
                .baseUrl(System.getenv("BASE_URL"))
                .apiKey(System.getenv("KEY"))
                .maxRetries(0)
                .build();
        ChatCompletion whole = client.chat().completions().create(ask("test/model", "hello !tokens:4").build());
        ChatCompletion said = streamed(client, ask("test/model", "hello !tokens:4"));
        boolean broken = false;
        try {
            streamed(client, ask("test/model", "hello !tokens:40 !cut:2500"));
        } catch (RuntimeException failed) {
            broken = true;
        }
        String code = null;
        int status = 200;
        try {
            client.chat().completions().create(ask("test/none", "hello").build());
        } catch (OpenAIServiceException failed) {
            code = failed.code().orElse(null);
            status = failed.statusCode();
        }
        System.out.printf(
                "{\"whole\":\"%s\",\"streamed\":\"%s\",\"finish\":\"%s\",\"completionTokens\":%d,"
                        + "\"broken\":%b,\"code\":\"%s\",\"status\":%d}%n",
                textOf(whole), textOf(said), said.choices().get(0).finishReason().asString(),
                said.usage().get().completionTokens(), broken, code, status);
    }

    private static ChatCompletionCreateParams.Builder ask(String model, String text) {
        return ChatCompletionCreateParams.builder().model(model).addUserMessage(text);
    }

    private static String textOf(ChatCompletion completion) {
        return completion.choices().get(0).message().content().get();
    }

    /** The SDK's own accumulator puts the stream together. */
    private static ChatCompletion streamed(OpenAIClient client, ChatCompletionCreateParams.Builder request) {
        ChatCompletionStreamOptions options =
                ChatCompletionStreamOptions.builder().includeUsage(true).build();
        ChatCompletionAccumulator accumulator = ChatCompletionAccumulator.create();
        try (StreamResponse<ChatCompletionChunk> stream =
                client.chat().completions().createStreaming(request.streamOptions(options).build())) {
            stream.stream().forEach(accumulator::accumulate);
        }
        return accumulator.chatCompletion();
    }
}
