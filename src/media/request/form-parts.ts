import { GatewayError } from '#wire';

/** One part of a form. */
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
  const found = BOUNDARY.exec(contentType);
  const boundary = found?.[1] ?? found?.[2];
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
  const found = /(?:^|;)\s*name=(?:"([^"]{1,256})"|([^\s";]{1,256}))/i.exec(disposition ?? '');
  const name = found?.[1] ?? found?.[2];
  if (disposition === undefined || name === undefined) throw broken('a part has no name');
  if (/^content-transfer-encoding:\s*(?!binary|8bit|7bit)/im.test(head))
    throw broken('the Content-Transfer-Encoding of a part is not binary');
  const isJson = /^content-type:\s*application\/json\b/im.test(head);
  return { name, isFile: !isJson && /;\s*filename\*?=/i.test(disposition), isJson };
}
