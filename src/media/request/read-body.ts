import { GatewayError } from '#errors';
import { inTurns, isObject, type JsonLimits, parseJson, readJson } from '#wire';
import { formParts } from '#http';
import { bytesOfString, longStringsIn, type Outline, outlineInTurns, UpstreamFailure } from '#wire/replies';
import type { BodyParts } from './input-images.ts';
import { REFERENCES } from './image-fields.ts';

export interface ReadBody extends BodyParts {
  readonly value: unknown;
}

/** A longer text of a body must be an image, because no other field takes so long a text. */
const LONG_TEXT = 256 * 1024;
const FILE = '\u0000file ';
const NO_FILE = () => null;
const NO_BYTES = (text: string) => Buffer.from(text, 'utf8');

export const IMAGE_INPUTS: readonly string[] = ['images', 'image', 'mask', REFERENCES];

interface JsonFields {
  readonly inputs: readonly string[];
  /** Other fields may have long texts too, because a provider may take any field. Default: they are refused. */
  readonly othersMayBeLong?: boolean;
}

/** Reads JSON without parsing its inputs. Rejects with GatewayError `invalid_request`. */
export async function readJsonBody(
  bytes: Buffer,
  { inputs, othersMayBeLong = false }: JsonFields,
  limits: JsonLimits,
): Promise<ReadBody> {
  if (bytes.byteLength <= LONG_TEXT) return { value: parseJson(bytes, limits), bytesOf: NO_BYTES, fileOf: NO_FILE };
  let outline: Outline;
  try {
    outline = await inTurns(outlineInTurns(bytes, LONG_TEXT));
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    throw new GatewayError('invalid_request', 'The body has a string without an end, or too many strings', {
      cause: error,
    });
  }
  const parsed = await readJson(outline.json, limits);
  const others = othersMayBeLong && isObject(parsed) ? longTexts(parsed, inputs, outline) : {};
  const value = isObject(parsed) ? { ...parsed, ...others } : parsed;
  refuseLongTexts(value, inputs, outline, outline.strings.length - Object.keys(others).length);
  return { value, bytesOf: (text) => bytesOfString(text, outline), fileOf: NO_FILE };
}

/** The long texts of the fields that are no inputs. */
function longTexts(
  value: Readonly<Record<string, unknown>>,
  inputs: readonly string[],
  outline: Outline,
): Readonly<Record<string, unknown>> {
  const texts = Object.entries(value).filter(
    ([name, member]) => !inputs.includes(name) && typeof member === 'string' && longStringsIn(member, outline) > 0,
  );
  const textOf = (mark: string) => parseJson(Buffer.concat([QUOTE, bytesOfString(mark, outline), QUOTE]), ONE_TEXT);
  return Object.fromEntries(texts.map(([name, mark]) => [name, textOf(mark as string)]));
}

const QUOTE = Buffer.from('"');
const ONE_TEXT: JsonLimits = { jsonDepthMax: 1, jsonKeysMax: 1 };

/**
 * Refuses long texts outside of the inputs, because a provider would get the mark instead of the text. `length`: how
 * many there are.
 */
function refuseLongTexts(value: unknown, inputs: readonly string[], outline: Outline, length: number): void {
  if (!isObject(value) || length === 0) return;
  const elsewhere = Object.entries(value).find(
    ([name, member]) => !inputs.includes(name) && longStringsIn(member, outline) > 0,
  );
  const inInputs = longStringsIn(
    inputs.map((name) => (Object.hasOwn(value, name) ? value[name] : null)),
    outline,
  );
  // Fewer, if a field occurs twice or the name of a field is a long text.
  if (elsewhere === undefined && inInputs === length) return;
  const param = elsewhere?.[0];
  throw new GatewayError('invalid_request', `${param ?? 'The body'} has a text of more than ${LONG_TEXT} bytes`, {
    param,
  });
}

/**
 * Reads a form (`multipart/form-data`). Values get the types of the schema's properties, or are JSON where their part
 * says so. A file becomes a text for which `fileOf` finds the file. Throws GatewayError `invalid_request`.
 */
export function readForm(
  bytes: Buffer,
  contentType: string,
  properties: Readonly<Record<string, object>>,
  limits: JsonLimits,
): ReadBody {
  const files: Buffer[] = [];
  const images: unknown[] = [];
  const value: Record<string, unknown> = {};
  for (const { name: fieldName, isFile, isJson, content } of formParts(bytes, contentType)) {
    const name = fieldName.replace(/\[\]$/, '');
    const refused = (message: string) => new GatewayError('invalid_request', `${name} ${message}`, { param: name });
    const isImage = name === 'image' || name === 'images';
    if (isFile && !isImage && name !== 'mask') throw refused('is a file; files are image, image[] and mask');
    if (!isFile && content.byteLength > LONG_TEXT) throw refused(`has a text of more than ${LONG_TEXT} bytes`);
    const text = isFile ? `${FILE}${files.length}` : content.toString('utf8');
    if (isFile) files.push(content);
    if (isImage) images.push(...(isJson ? [parseJson(content, limits)].flat() : [text]));
    else if (Object.hasOwn(value, name)) throw refused('occurs more than once');
    else
      Object.defineProperty(value, name, {
        value: isFile ? text : isJson ? parseJson(content, limits) : fromText(text, properties[name], limits),
        enumerable: true,
        configurable: true,
        writable: true,
      });
  }
  if (images.length > 0) value['images'] = images;
  return {
    value,
    bytesOf: NO_BYTES,
    fileOf: (text) => (text.startsWith(FILE) ? (files[Number(text.slice(FILE.length))] ?? null) : null),
  };
}

/**
 * Converts a value of a form, which is always text. A text that does not fit the type of its field stays text, and
 * the schema refuses it.
 */
function fromText(text: string, schema: object | undefined, limits: JsonLimits): unknown {
  const { type = 'string' } = (schema ?? {}) as { type?: string | readonly string[] };
  const types = typeof type === 'string' ? [type] : type;
  if ((types.includes('integer') || types.includes('number')) && /^-?\d{1,15}(?:\.\d{1,15})?$/.test(text))
    return Number(text);
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true';
  if ((types.includes('object') || types.includes('array')) && /^\s*[[{]/.test(text))
    return parseJson(Buffer.from(text), limits);
  return text;
}
