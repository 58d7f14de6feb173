import { BOOT } from '../../../app/boot.ts';
import { queueVideo } from '../../../code/curl.ts';
import { openaiJs, openaiVideo } from '../../../code/openai.ts';
import { jsonText, type Snippet } from '../../../code/snippet.ts';
import { type ImageAsk, imageBody, imagePath } from '../image/image-ask.ts';
import { QUEUE_PATH, type VideoAsk, videoBody } from '../video/video-ask.ts';
import { asCurl, asSent } from './as-sent.ts';

const EXAMPLE = 'A tollgate in the morning';

/** Uses an example prompt if no prompt is typed yet. */
const filled = <Ask extends { readonly prompt: string }>(ask: Ask): Ask =>
  ask.prompt.trim() === '' ? { ...ask, prompt: EXAMPLE } : ask;

/** Code that makes or edits images. */
export function codeOfImage(model: string, given: ImageAsk): readonly Snippet[] {
  const ask = filled(given);
  const path = imagePath(ask);
  const body = imageBody(model, ask);
  const { images: _images, ...words } = body;
  const makes = ask.images.length === 0;
  const form = Object.entries(words).map(([name, value]) => `-F ${name}=${quoted(String(value))}`);
  return [
    makes
      ? asCurl(path, { ...body, output_type: 'file' }, ['-o image.png'])
      : {
          id: 'curl',
          name: 'curl',
          code: [
            `curl ${BOOT.base_url}${path}`,
            '  -H "Authorization: Bearer $KEY"',
            ...[...form, '-F output_type=file', '-F image=@image.png', '-o edited.png'].map((line) => `  ${line}`),
          ].join(' \\\n'),
        },
    {
      id: 'openai',
      name: 'openai',
      code: makes
        ? openaiJs(BOOT.base_url, `const { data } = await client.images.generate(${jsonText(words)});\n${BYTES}`)
        : `import { createReadStream } from 'node:fs';\n${openaiJs(
            BOOT.base_url,
            `const image = createReadStream('image.png');\nconst { data } = await client.images.edit({ image, ...${jsonText(words)} });\n${BYTES}`,
          )}`,
    },
    asSent(path, body),
  ];
}

const BYTES = `const bytes = Buffer.from(data[0].b64_json, 'base64');`;
const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** Code that makes a video. */
export function codeOfVideo(model: string, given: VideoAsk): readonly Snippet[] {
  const ask = filled(given);
  const body = videoBody(model, ask);
  const openai = { model, prompt: body['prompt'], seconds: ask.duration.replace(/s$/, '') };
  return [
    { id: 'curl', name: 'curl', code: queueVideo(BOOT.base_url, body) },
    { id: 'openai', name: 'openai', code: openaiVideo(BOOT.base_url, openai) },
    asSent(QUEUE_PATH, body),
  ];
}
