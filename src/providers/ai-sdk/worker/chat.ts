import type {
  LanguageModelV4,
  LanguageModelV4FilePart,
  LanguageModelV4Prompt,
  SharedV4Warning,
} from '@ai-sdk/provider';
import { type Loaded, sendJson, type WorkerCall } from './worker-call.ts';
import { toChatCall } from './call-options.ts';
import { ChunkWriter } from './chunk-writer.ts';
import { toCompletion } from './completion.ts';
import { stringOf } from './json.ts';
import { RequestFiles } from './load-file.ts';

/** Answers a chat request with `doStream` or `doGenerate`. Throws RequestFault, or what the package throws. */
export async function answerChat({ provider, strangeFetch }: Loaded, call: WorkerCall): Promise<void> {
  const { body, stream, signal } = call;
  const modelId = stringOf(body['model']) ?? '';
  const model = provider.languageModel(modelId);
  const { options, warnings, logprobs } = toChatCall(body, model.provider);
  await loadFiles(options.prompt, model, new RequestFiles(strangeFetch, call));
  const callOptions = { ...options, abortSignal: signal };
  if (body['stream'] === true) {
    const { stream: parts } = await model.doStream(callOptions);
    return new ChunkWriter({ stream, modelId, warnings, logprobs }).writeAll(parts);
  }
  const result = await model.doGenerate(callOptions);
  const all: readonly SharedV4Warning[] = [...warnings, ...result.warnings];
  const end = toCompletion(result, { modelId, warnings: all, logprobs });
  if (!stream.destroyed) sendJson(stream, end);
}

/**
 * Replaces addresses of files that the model does not fetch itself by their content, as the AI SDK does. Throws
 * RequestFault.
 */
async function loadFiles(prompt: LanguageModelV4Prompt, model: LanguageModelV4, from: RequestFiles): Promise<void> {
  const files = prompt.flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.filter((part) => part.type === 'file' && part.data.type === 'url'),
  ) as LanguageModelV4FilePart[];
  if (files.length === 0) return;
  const supported = await model.supportedUrls;
  await Promise.all(
    files.map(async (file) => {
      if (file.data.type !== 'url' || takesUrl(supported, file.mediaType, file.data.url.href)) return;
      const { data, mediaType } = await from.load(file.data.url);
      Object.assign(file, { data: { type: 'data', data }, mediaType });
    }),
  );
}

/** `mediaType` may be the first half of a type alone, such as `image`. */
function takesUrl(supported: Readonly<Record<string, readonly RegExp[]>>, mediaType: string, url: string): boolean {
  const [kind] = mediaType.split('/');
  return Object.entries(supported).some(
    ([type, patterns]) =>
      (type === '*' || type === '*/*' || type === mediaType || type === `${kind}/*`) &&
      patterns.some((pattern) => new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, '')).test(url)),
  );
}
