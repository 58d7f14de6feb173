import { GatewayError } from '#wire';

/** One field of a form. */
interface FormPart {
  readonly name: string;
  /** It came as a file. */
  readonly isFile: boolean;
  readonly bytes: Buffer;
}

const PARTS_MAX = 64;
const HEAD_BYTES_MAX = 4096;
const BOUNDARY = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i;
const NAME = /;\s*name="((?:[^"\\]|\\.){1,256})"/i;
const FILE = /;\s*filename\*?=/i;
const CRLF = '\r\n';

const fault = (message: string) => new GatewayError('invalid_request', message);

/**
 * The fields of a form (RFC 7578) that is in memory. Each is a view of its bytes. Throws GatewayError
 * `invalid_request` for what is no form, or has too many fields.
 */
export function formParts(bytes: Buffer, contentType: string): readonly FormPart[] {
  const [, quoted, plain] = BOUNDARY.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) throw fault('The content-type of the form has no boundary');
  const mark = Buffer.from(`${CRLF}--${boundary}`);
  const first = bytes.indexOf(mark.subarray(CRLF.length));
  if (first === -1) throw broken();
  const parts: FormPart[] = [];
  for (let at = first + mark.length - CRLF.length; ;) {
    const next = bytes.toString('latin1', at, at + 2);
    if (next === '--') return parts;
    if (next !== CRLF) throw broken();
    if (parts.length === PARTS_MAX) throw fault(`The form has more than ${PARTS_MAX} fields`);
    const headEnd = bytes.subarray(at, at + HEAD_BYTES_MAX).indexOf(CRLF + CRLF);
    if (headEnd === -1) throw broken();
    const from = at + headEnd + 2 * CRLF.length;
    // The mark of an empty field begins with the end of its head.
    const to = bytes.indexOf(mark, from - CRLF.length);
    if (to === -1) throw broken();
    parts.push(toPart(bytes.toString('utf8', at, at + headEnd), bytes.subarray(from, Math.max(from, to))));
    at = to + mark.length;
  }
}

function toPart(head: string, bytes: Buffer): FormPart {
  const line = head.split(CRLF).find((one) => /^content-disposition:\s*form-data/i.test(one));
  const name = NAME.exec(line ?? '')?.[1];
  if (line === undefined || name === undefined) throw broken();
  return { name, isFile: FILE.test(line), bytes };
}

const broken = () => fault('The body is not the form that its content-type says');
