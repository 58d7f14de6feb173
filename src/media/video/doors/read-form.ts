import { GatewayError } from '#wire';
import { formParts } from '../../request/form-parts.ts';

const MEMBER = /^([a-z_]{1,64})\[(?:image_url|url|file_id)\]$/;

/**
 * Converts a form to the body that the same request would have in JSON. Files become data URLs. Values become
 * numbers and booleans where `schema` says so. Throws GatewayError `invalid_request` if the bytes are not a form.
 */
export function readForm(
  bytes: Buffer,
  contentType: string,
  schema: Readonly<Record<string, object>>,
): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  for (const { name: written, isFile, content: value } of formParts(bytes, contentType)) {
    const name = MEMBER.exec(written)?.[1] ?? written;
    if (Object.hasOwn(body, name)) throw new GatewayError('invalid_request', `${name} occurs twice`, { param: name });
    body[name] = isFile ? `data:;base64,${value.toString('base64')}` : valueOf(value.toString('utf8'), schema[name]);
  }
  return body;
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
