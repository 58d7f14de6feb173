import { GatewayError } from '#errors';

interface FormPart {
  readonly name: string;
  readonly isFile: boolean;
  /** Its content says that it is JSON, with a file name or without. */
  readonly isJson: boolean;
  readonly content: Buffer;
}

/** More parts than any valid request has. */
const PARTS_MAX = 128;
const HEAD_BYTES_MAX = 4 * 1024;
const HEAD_END = Buffer.from('\r\n\r\n');
/** A boundary has only the characters that RFC 2046, section 5.1.1, allows. */
const BOUNDARY = /;\s*boundary=(?:"([\w'()+,./:=? -]{1,70})"|([\w'()+,./:=?-]{1,70}))/i;

const fault = (message: string, param?: string) => new GatewayError('invalid_request', message, { param });
const broken = (why: string) => fault(`The body is not a valid form (multipart/form-data): ${why}`);

/** The parts of a form (RFC 7578). Their contents are not copied. Throws GatewayError `invalid_request`. */
export function formParts(bytes: Buffer, contentType: string): readonly FormPart[] {
  const match = BOUNDARY.exec(contentType);
  const boundary = match?.[1] ?? match?.[2];
  if (boundary === undefined) throw fault('The content-type of a form must have a boundary', 'content-type');
  const parts: FormPart[] = [];
  const first = Buffer.from(`--${boundary}`, 'latin1');
  const next = Buffer.from(`\r\n--${boundary}`, 'latin1');
  // The text before the first boundary has no meaning.
  const before = bytes.subarray(0, first.length).equals(first) ? -2 : bytes.indexOf(next);
  if (before === -1) throw broken('its boundary is missing');
  let at = before + next.length;
  for (;;) {
    const after = bytes.toString('latin1', at, at + 2);
    if (after === '--') return parts;
    if (after !== '\r\n') throw broken('a boundary is not followed by the end of the line');
    if (parts.length === PARTS_MAX) throw fault(`The form has more than ${PARTS_MAX} parts`);
    // If a head is empty, the line break after the boundary is also a part of the head's end.
    const headEnd = bytes.subarray(at, at + HEAD_BYTES_MAX).indexOf(HEAD_END);
    if (headEnd === -1) throw broken('a part has no headers');
    const start = at + headEnd + HEAD_END.length;
    const end = bytes.indexOf(next, start);
    if (end === -1) throw broken('its last boundary is missing');
    parts.push({ ...readHead(bytes.toString('utf8', at + 2, at + headEnd)), content: bytes.subarray(start, end) });
    at = end + next.length;
  }
}

function readHead(head: string): Omit<FormPart, 'content'> {
  const disposition = /^content-disposition:\s*form-data\s*;(.*)$/im.exec(head)?.[1];
  // The name may be without quotes (RFC 2183), as .NET writes it.
  const match = /(?:^|;)\s*name=(?:"([^"]{1,256})"|([^\s";]{1,256}))/i.exec(disposition ?? '');
  const name = match?.[1] ?? match?.[2];
  if (disposition === undefined || name === undefined) throw broken('a part has no name');
  if (/^content-transfer-encoding:\s*(?!binary|8bit|7bit)/im.test(head))
    throw broken('the Content-Transfer-Encoding of a part is not binary');
  const isJson = /^content-type:\s*application\/json\b/im.test(head);
  return { name, isFile: !isJson && /;\s*filename\*?=/i.test(disposition), isJson };
}

type FormFields = Readonly<Record<string, object>>;

interface FormOf {
  readonly properties: FormFields;
  readonly required: readonly string[];
  /** The fields that are files, with what they are. */
  readonly files: Readonly<Record<string, string>>;
  /** Those of them that may be sent several times. */
  readonly several?: readonly string[];
  readonly example: Readonly<Record<string, unknown>>;
}

/**
 * The schema of a form, for the reference. It has the fields of the same body in JSON, and files where that has texts.
 * The reader of forms makes the one of the other, so this schema validates nothing.
 */
export const formSchema = ({ properties, required, files, several = [], example }: FormOf) => ({
  type: 'object',
  description: 'A field whose value is not a text may be sent as text or as a part of type `application/json`.',
  required,
  additionalProperties: true,
  examples: [example],
  properties: {
    ...Object.fromEntries(
      Object.entries(properties).flatMap(([name, field]) => (isNull(field) ? [] : [[name, withoutNull(field)]])),
    ),
    ...Object.fromEntries(
      Object.entries(files).map(([name, description]) => {
        const file = { type: 'string', format: 'binary' };
        return [name, several.includes(name) ? { type: 'array', items: file, description } : { ...file, description }];
      }),
    ),
  },
});

/** Whether a field may not be given: only null fits. */
const isNull = ({ enum: values }: { readonly enum?: readonly unknown[] }): boolean =>
  values?.every((value) => value === null) === true;

/** A form has no null: a field is left out instead. A schema with a name is the same everywhere. */
function withoutNull(field: object): object {
  if ('title' in field) return field;
  const { type, enum: values, ...rest } = field as { readonly type?: unknown; readonly enum?: readonly unknown[] };
  const types = Array.isArray(type) ? type.filter((one) => one !== 'null') : type;
  return {
    ...rest,
    ...(types === undefined ? {} : { type: Array.isArray(types) && types.length === 1 ? (types[0] as string) : types }),
    ...(values === undefined ? {} : { enum: values.filter((value) => value !== null) }),
  };
}

/**
 * Describes the body of a route: JSON, and a form where it takes one. The form stands first, because a generator that
 * knows only one type of body takes the first: so its clients upload files.
 */
export const bodyOrForm = ({ schema, form }: { readonly schema: object; readonly form?: object }) =>
  form === undefined
    ? { consumes: ['application/json'], body: schema }
    : { body: { content: { 'multipart/form-data': { schema: form }, 'application/json': { schema } } } };
