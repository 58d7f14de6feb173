import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#errors';
import { ambiguousKeyAt, interpretedFields, type JsonLimits, parseJson } from '#wire';
import { createCheck, formParts } from '#http';
import { type TranscriptionBody, type TranscriptionRoute, transcriptionSchema } from './transcription-schema.ts';

export interface Upload {
  readonly body: TranscriptionBody;
  /** A part of the body. */
  readonly file: Buffer;
  readonly fields: readonly FormField[];
  /** SHA-256 of the content, the same whatever separates the parts of the form. */
  readonly digest: () => string;
}

interface FormField {
  /** As it was written, such as `include[]`. */
  readonly name: string;
  readonly base: string;
  readonly text: string;
}

/** A longer text is refused, unless it may be a sample of a voice. */
const TEXT_BYTES_MAX = 64 * 1024;
const SAMPLES = 'known_speaker_references';
/** The fields that may occur more than once. */
const LISTS: ReadonlySet<string> = new Set([
  'languages',
  'keywords',
  'timestamp_granularities',
  'include',
  'known_speaker_names',
  SAMPLES,
]);
const FORM = /^multipart\/form-data\b/i;

const refused = (param: string, message: string) =>
  new GatewayError('invalid_request', `${param} ${message}`, { param });

/** Makes the function that reads the form of a route. It throws GatewayError `invalid_request`. */
export function createReadUpload(
  route: TranscriptionRoute,
  limits: JsonLimits,
): (bytes: Buffer, headers: IncomingHttpHeaders) => Upload {
  const schema = transcriptionSchema(route);
  const check = createCheck<TranscriptionBody>(schema);
  const names = interpretedFields(['file', ...Object.keys(schema.properties)]);
  return (bytes, headers) => {
    const type = headers['content-type'] ?? '';
    if (!FORM.test(type))
      throw new GatewayError('invalid_request', 'The body must be a form (multipart/form-data) with a file', {
        param: 'content-type',
      });
    let file: Buffer | null = null;
    const fields: FormField[] = [];
    for (const { name, isFile, content } of formParts(bytes, type)) {
      const base = name.replace(/\[.*$/s, '');
      if (isFile) {
        if (name !== 'file') throw refused(base, 'is a file; the file is called file');
        if (file !== null) throw refused('file', 'occurs more than once');
        file = content;
        continue;
      }
      if (base === 'file') throw refused('file', 'must be a file: a part of the form with a file name');
      if (base !== SAMPLES && content.byteLength > TEXT_BYTES_MAX)
        throw refused(base, `has more than ${TEXT_BYTES_MAX} bytes`);
      fields.push({ name, base, text: content.toString('utf8') });
    }
    const value = valueOf(fields, limits);
    const fault = ambiguousKeyAt(value, [[[], names]]);
    if (fault !== null) throw new GatewayError('invalid_request', fault.message, { param: fault.param });
    // OpenAI's API has no `stream` for translations, so the field has no effect there, as any unknown field.
    const body = check(route.streams ? value : { ...value, stream: false });
    if (file === null || file.byteLength === 0) throw refused('file', 'is missing: upload a file with sound');
    if (body.stream && !STREAMED.has(body.response_format ?? 'json'))
      throw refused('stream', `needs the response_format ${[...STREAMED].join(', ')}`);
    const content = file;
    return { body, file, fields, digest: () => digestOf(route.path, content, fields) };
  };
}

const STREAMED: ReadonlySet<string> = new Set(['json', 'text', 'diarized_json']);

/** The fields as an object. A text that does not fit the type of its field stays text, and the schema refuses it. */
function valueOf(fields: readonly FormField[], limits: JsonLimits): Record<string, unknown> {
  const value = Object.create(null) as Record<string, unknown>;
  for (const { name, base, text } of fields) {
    if (LISTS.has(base)) {
      const list = (value[base] ??= []) as string[];
      list.push(text);
    } else if (base === 'chunking_strategy' && name !== base) {
      // Clients write its members as fields of their own, such as `chunking_strategy[type]`.
      value[base] ??= {};
    } else if (OBJECTS.has(base) && name !== base) setInside(value, name, text);
    else if (base in value) throw refused(base, 'occurs more than once');
    else value[base] = fromText(base, text, limits);
  }
  return { ...value };
}

const NUMBERS: ReadonlySet<string> = new Set(['temperature']);
const OBJECTS: ReadonlySet<string> = new Set(['provider', 'metadata']);

function fromText(base: string, text: string, limits: JsonLimits): unknown {
  if (base === 'stream' && (text === 'true' || text === 'false')) return text === 'true';
  if (NUMBERS.has(base) && /^-?\d{1,9}(?:\.\d{1,15})?$/.test(text)) return Number(text);
  if (OBJECTS.has(base) && /^\s*\{/.test(text)) return parseJson(Buffer.from(text), limits);
  return text;
}

/** Clients also write an object as a field for each member: `provider[order][]`. */
const PATH = /^\w{1,64}(?:\[\w{1,64}\]){1,3}(?:\[\])?$/;

function setInside(value: Record<string, unknown>, name: string, text: string): void {
  if (!PATH.test(name)) throw refused(name, 'must be written like provider[order][] or as JSON');
  const path = name.replaceAll(/\]/g, '').split('[');
  const isList = path.at(-1) === '';
  if (isList) path.pop();
  const last = path.pop()!;
  let at = value;
  for (const key of path) {
    const inner = (at[key] ??= Object.create(null) as Record<string, unknown>);
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner))
      throw refused(name, 'occurs more than once');
    at = inner as Record<string, unknown>;
  }
  const fieldValue = text === 'true' || text === 'false' ? text === 'true' : text;
  if (isList) {
    const list = (at[last] ??= []);
    if (!Array.isArray(list)) throw refused(name, 'occurs more than once');
    list.push(fieldValue);
  } else if (last in at) throw refused(name, 'occurs more than once');
  else at[last] = fieldValue;
}

function digestOf(path: string, file: Buffer, fields: readonly FormField[]): string {
  const parts = fields.map(({ name, text }) => [name, text]);
  return hash('sha256', `${path} ${hash('sha256', file)} ${JSON.stringify(parts)}`);
}
