/**
 * A form with a boundary of which no reader makes anything else. Of another one, each boundary makes another request.
 */
const FORM =
  /^multipart\/form-data\s*;\s*(?:charset="?[\w-]+"?\s*;\s*)?boundary=(?:"([\w'()+,./:=?-]+)"|([\w'+.-]+))\s*$/i;

/**
 * The body of a request, the same for each repeat: clients choose another boundary of a form's parts each time, so the
 * length of each part stands in its place. Forms with other parts have another content, whatever their boundaries.
 */
export function contentOfBody(body: Buffer, contentType: string | undefined): Buffer {
  const form = FORM.exec(contentType ?? '');
  const boundary = form?.[1] ?? form?.[2];
  if (boundary === undefined) return body;
  const parts = `\r\n${body.toString('latin1')}`.split(`\r\n--${boundary}`);
  return Buffer.from(parts.map((part) => `--${part.length}:${part}`).join('\r\n'), 'latin1');
}
