import { createHash } from 'node:crypto';
import { GatewayError, type JsonLimits, parseJson } from '#wire';
import { formParts } from '../../request/form-parts.ts';
import { InputBytes } from '../../request/input-bytes.ts';

const MEMBER = /^([a-z_]{1,64})\[(?:image_url|url|file_id)\]$/;
const FILE = '\u0000file ';

/** A form as it was read. */
interface ReadForm {
  /** The body that the same request would have in JSON. A file is a text for which `fileOf` finds the file. */
  readonly value: Readonly<Record<string, unknown>>;
  fileOf(text: string): Buffer | null;
  /** SHA-256 in hex of the fields and files. The bytes of a form differ each time. */
  readonly hash: () => string;
}

/**
 * Reads a form. Values become numbers and booleans where `schema` says so, and JSON where their part says so. Throws
 * GatewayError `invalid_request` if the bytes are not a form.
 */
export function readForm(
  bytes: Buffer,
  contentType: string,
  schema: Readonly<Record<string, object>>,
  limits: JsonLimits,
): ReadForm {
  const value: Record<string, unknown> = {};
  const files: Buffer[] = [];
  for (const { name: written, isFile, isJson, content } of formParts(bytes, contentType)) {
    const name = MEMBER.exec(written)?.[1] ?? written;
    if (Object.hasOwn(value, name)) throw new GatewayError('invalid_request', `${name} occurs twice`, { param: name });
    const text = isFile ? `${FILE}${files.length}` : content.toString('utf8');
    if (isFile) files.push(content);
    value[name] = isFile ? text : isJson ? parseJson(content, limits) : valueOf(text, schema[name]);
  }
  const fileOf = (text: string) => (text.startsWith(FILE) ? (files[Number(text.slice(FILE.length))] ?? null) : null);
  return { value, fileOf, hash: () => hashOf(value, fileOf) };
}

/** The hash of the body as JSON with the files as data URLs, but no file becomes a text for it. */
function hashOf(value: ReadForm['value'], fileOf: ReadForm['fileOf']): string {
  const sum = createHash('sha256').update('{');
  for (const [index, [name, member]] of Object.entries(value).entries()) {
    sum.update(`${index === 0 ? '' : ','}${JSON.stringify(name)}:`);
    const file = typeof member === 'string' ? fileOf(member) : null;
    if (file === null) {
      sum.update(JSON.stringify(member));
      continue;
    }
    sum.update('"data:;base64,');
    for (const piece of InputBytes.ofFile(file).base64) sum.update(piece);
    sum.update('"');
  }
  return sum.update('}').digest('hex');
}

/** Converts a value by the type of its field, because every value in a form is text. */
function valueOf(text: string, field: object | undefined): unknown {
  const { type } = (field ?? {}) as { readonly type?: unknown };
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true';
  const isNumber = (types.includes('integer') || types.includes('number')) && !types.includes('string');
  if (isNumber && /^-?\d{1,12}(?:\.\d{1,6})?$/.test(text)) return Number(text);
  return text;
}
