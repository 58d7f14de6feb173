import { PiecedBody } from '#gateway';
import type { EditInputs, InputImage } from '../request/input-images.ts';
import { FormBody } from './form-body.ts';

interface EditBody {
  readonly contentType: string;
  readonly body: PiecedBody;
}

/** A form for OpenAI's API: one `image`, or several `image[]`, and a `mask`. */
export function formBody(fields: Readonly<Record<string, unknown>>, { images, mask }: EditInputs): EditBody {
  const form = new FormBody();
  for (const [name, value] of Object.entries(fields)) form.field(name, value);
  const file = (name: string, fileName: string, { format, content }: InputImage) =>
    form.file(name, `${fileName}.${format}`, `image/${format}`, content.file);
  images.forEach((image, index) => file(images.length === 1 ? 'image' : 'image[]', `image_${index}`, image));
  if (mask !== null) file('mask', 'mask', mask);
  return { contentType: form.contentType, body: form.end() };
}

/** How a wire writes images into JSON: the text before and after the base64 of each. */
interface JsonForm {
  readonly list: string;
  readonly mask: string;
  readonly before: string;
  readonly after: string;
}

/** A JSON object with the images as data URLs. The base64 is neither copied nor parsed. */
export function jsonBody(
  fields: Readonly<Record<string, unknown>>,
  { images, mask }: EditInputs,
  form: JsonForm,
): EditBody {
  const body = new PiecedBody();
  let text = JSON.stringify(fields).slice(0, -1);
  const put = ({ format, content }: InputImage) => {
    body.add(Buffer.from(`${text}${form.before}data:image/${format};base64,`)).add(content.base64);
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
  body.add(Buffer.from(`${text}}`));
  return { contentType: 'application/json', body };
}
