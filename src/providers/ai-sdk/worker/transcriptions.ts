import type { JsonObject } from '#wire';
import type { TranscriptionModelV4CallOptions, TranscriptionModelV4Result } from '@ai-sdk/provider';
import { type Loaded, modelOf, sendJson, type WorkerCall } from './worker-call.ts';
import { RequestFault } from './fault.ts';
import { isRecord, listOf, stringOf } from './json.ts';
import { type Options, optionsOf } from './provider-options.ts';
import { toAudioUsage } from './usage.ts';

export async function answerTranscriptions({ provider }: Loaded, { body, stream, signal }: WorkerCall): Promise<void> {
  const model = modelOf(provider, 'transcription', stringOf(body['model']) ?? '');
  if (model === null) throw new RequestFault('This package of the AI SDK makes no transcriptions', { status: 404 });
  const result = await model.doGenerate({ ...toTranscriptionOptions(body, model.provider), abortSignal: signal });
  if (stream.destroyed) return;
  const format = stringOf(body['response_format']) ?? 'json';
  if (format === 'json' || format === 'verbose_json') return sendJson(stream, toJson(result, format));
  const text = format === 'text' ? result.text : toSubtitles(result, format);
  stream.respond({ ':status': 200, 'content-type': 'text/plain; charset=utf-8' });
  stream.end(text);
}

/** Fields of OpenAI's API that the AI SDK has as options of a provider, with their names there. */
const OPTIONS: readonly (readonly [field: string, option: string])[] = [
  ['language', 'language'],
  ['prompt', 'prompt'],
  ['temperature', 'temperature'],
];

function toTranscriptionOptions(body: JsonObject, provider: string): TranscriptionModelV4CallOptions {
  const { file, provider_options: settings } = body;
  if (!isRecord(file) || !(file['data'] instanceof Uint8Array))
    throw new RequestFault('file is missing', { param: 'file' });
  const own = OPTIONS.flatMap(([field, option]) => {
    const text = stringOf(body[field]);
    return text === undefined ? [] : [[option, option === 'temperature' ? Number(text) : text] as const];
  });
  const name = provider.split('.', 1)[0]!;
  const options: Options =
    optionsOf(typeof settings === 'string' ? parsed(settings) : settings, 'provider_options') ?? {};
  const granularities = listOf(body['timestamp_granularities[]']).filter((one) => one === 'word' || one === 'segment');
  return {
    audio: file['data'],
    mediaType: stringOf(file['mediaType']) ?? 'audio/wav',
    ...(granularities.length === 0 ? {} : { timestampGranularities: granularities }),
    providerOptions:
      own.length === 0 ? options : { ...options, [name]: { ...Object.fromEntries(own), ...options[name] } },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function toJson(result: TranscriptionModelV4Result, format: 'json' | 'verbose_json'): object {
  const { text, language, segments, words, warnings, usage } = result;
  const duration = toldDuration(result);
  const tokens = toAudioUsage(usage);
  const used = {
    // A gateway that charges by the minute reads it.
    ...(duration === undefined ? {} : { duration }),
    ...(tokens === null ? {} : { usage: { type: 'tokens', ...tokens } }),
  };
  const rest = warnings.length === 0 ? {} : { warnings };
  if (format === 'json') return { text, ...used, ...rest };
  return {
    task: 'transcribe',
    ...(language === undefined ? {} : { language }),
    text,
    segments: segments.map((one, id) => ({ id, start: one.startSecond, end: one.endSecond, text: one.text })),
    ...(words === undefined
      ? {}
      : { words: words.map((one) => ({ word: one.text, start: one.startSecond, end: one.endSecond })) }),
    ...used,
    ...rest,
  };
}

/**
 * The duration that the vendor tells. A vendor that tells none has a package that takes the end of the last word for
 * it, which leaves out silence; the gateway measures the file.
 */
function toldDuration({ durationInSeconds: duration, segments }: TranscriptionModelV4Result): number | undefined {
  return duration === (segments.at(-1)?.endSecond ?? 0) ? undefined : duration;
}

function toSubtitles({ segments }: TranscriptionModelV4Result, format: string): string {
  if (format !== 'srt' && format !== 'vtt')
    throw new RequestFault(`The AI SDK has no response_format ${format}`, { param: 'response_format' });
  if (segments.length === 0)
    throw new RequestFault(`This model tells no times, so there is no ${format}`, { param: 'response_format' });
  const mark = format === 'srt' ? ',' : '.';
  const cues = segments.map(({ startSecond, endSecond, text }, index) => {
    const times = `${clock(startSecond, mark)} --> ${clock(endSecond, mark)}`;
    return `${format === 'srt' ? `${index + 1}\n` : ''}${times}\n${text.trim()}\n`;
  });
  return `${format === 'vtt' ? 'WEBVTT\n\n' : ''}${cues.join('\n')}`;
}

function clock(seconds: number, mark: string): string {
  const ms = Math.round(seconds * 1000);
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  const rest = String(ms % 1000).padStart(3, '0');
  return `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1000) % 60)}${mark}${rest}`;
}
