import { randomBytes } from 'node:crypto';
import type { EditInputs, InputImage } from '../request/input-images.ts';

interface EditBody {
  readonly contentType: string;
  readonly body: Buffer;
}

/** A form for OpenAI's API: one `image`, or several `image[]`, and a `mask`. */
export function formBody(fields: Readonly<Record<string, unknown>>, { images, mask }: EditInputs): EditBody {
  const boundary = `tollgate-${randomBytes(16).toString('hex')}`;
  const parts: Uint8Array[] = [];
  const part = (head: string, content: Uint8Array) => {
    parts.push(Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n`), content, LINE);
  };
  for (const [name, value] of Object.entries(fields))
    part(`name="${name}"`, Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
  const file = (name: string, fileName: string, { format, bytes }: InputImage) =>
    part(`name="${name}"; filename="${fileName}.${format}"\r\ncontent-type: image/${format}`, bytes());
  images.forEach((image, index) => file(images.length === 1 ? 'image' : 'image[]', `image_${index}`, image));
  if (mask !== null) file('mask', 'mask', mask);
  parts.push(Buffer.from(`--${boundary}--\r\n`));
  return { contentType: `multipart/form-data; boundary=${boundary}`, body: Buffer.concat(parts) };
}

const LINE = Buffer.from('\r\n');

/** How a wire writes images into JSON: the text before and after the base64 of each. */
interface JsonForm {
  readonly list: string;
  readonly mask: string;
  readonly before: string;
  readonly after: string;
}

/** A JSON object with the images as data URLs. The base64 is copied, and never parsed. */
export function jsonBody(
  fields: Readonly<Record<string, unknown>>,
  { images, mask }: EditInputs,
  form: JsonForm,
): EditBody {
  const pieces: Uint8Array[] = [];
  let text = JSON.stringify(fields).slice(0, -1);
  const put = ({ format, base64 }: InputImage) => {
    pieces.push(Buffer.from(`${text}${form.before}data:image/${format};base64,`), base64());
    text = form.after;
  };
  text += `,${JSON.stringify(form.list)}:[`;
  images.forEach((image, index) => {
    if (index > 0) text += ',';
    put(image);
  });
  text += ']';
  if (mask !== null) {
    text += `,${JSON.stringify(form.mask)}:`;
    put(mask);
  }
  pieces.push(Buffer.from(`${text}}`));
  return { contentType: 'application/json', body: Buffer.concat(pieces) };
}
