import { GatewayError } from '#wire';

const MEMBER = /^([a-z_]{1,64})\[(?:image_url|url|file_id)\]$/;

/**
 * The fields of a form as the same request would have them in JSON: files as data URLs, numbers and flags as such where
 * `schema` says so. Rejects with GatewayError `invalid_request` for what is no form.
 */
export async function readForm(
  bytes: Buffer,
  contentType: string,
  schema: Readonly<Record<string, object>>,
): Promise<Record<string, unknown>> {
  const body: Record<string, unknown> = {};
  let form: FormData;
  try {
    form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': contentType } }).formData();
  } catch (cause) {
    throw new GatewayError('invalid_request', 'The body is not the form that its content-type says', { cause });
  }
  for (const [written, value] of form) {
    const name = MEMBER.exec(written)?.[1] ?? written;
    if (Object.hasOwn(body, name)) throw new GatewayError('invalid_request', `${name} is there twice`, { param: name });
    body[name] =
      typeof value === 'string'
        ? valueOf(value, schema[name])
        : `data:;base64,${Buffer.from(await value.arrayBuffer()).toString('base64')}`;
  }
  return body;
}

/** Everything in a form is text. */
function valueOf(text: string, field: object | undefined): unknown {
  const { type } = (field ?? {}) as { readonly type?: unknown };
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true';
  const isNumber = (types.includes('integer') || types.includes('number')) && !types.includes('string');
  if (isNumber && /^-?\d{1,12}(?:\.\d{1,6})?$/.test(text)) return Number(text);
  return text;
}
