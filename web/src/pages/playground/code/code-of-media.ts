import { type ImageAsk, imageBody, imagePath } from '../image/image-ask.ts';
import type { VideoAsk } from '../video/video-ask.ts';
import { QUEUE_PATH, videoBody } from '../video/video-ask.ts';
import { asSent, curl, jsonText, OPENAI, type Sample } from './samples.ts';

/** Code that makes or edits images. */
export function codeOfImage(model: string, given: ImageAsk): readonly Sample[] {
  const ask = { ...given, prompt: given.prompt.trim() === '' ? 'A tollgate in the morning' : given.prompt };
  const path = imagePath(ask);
  const body = imageBody(model, ask);
  const { images: _images, ...words } = body;
  return [
    {
      id: 'curl',
      name: 'curl',
      code:
        ask.images.length === 0
          ? curl(path, { ...body, output_type: 'data_url' })
          : `curl \${BASE}${path}`.replace('${BASE}', location.origin) +
            ` \\\n  -H "Authorization: Bearer $KEY" \\\n  ${Object.entries(words)
              .map(([name, value]) => `-F ${name}=${JSON.stringify(String(value))}`)
              .join(' \\\n  ')} \\\n  -F image=@image.png`,
    },
    {
      id: 'openai',
      name: 'openai',
      code:
        ask.images.length === 0
          ? `${OPENAI}
const { data } = await client.images.generate(${jsonText(words)});
const bytes = Buffer.from(data[0].b64_json, 'base64');
`
          : `import { createReadStream } from 'node:fs';
${OPENAI}
const image = createReadStream('image.png');
const { data } = await client.images.edit({ image, ...${jsonText(words)} });
const bytes = Buffer.from(data[0].b64_json, 'base64');
`,
    },
    asSent(path, body),
  ];
}

/** Code that has a video made. */
export function codeOfVideo(model: string, given: VideoAsk): readonly Sample[] {
  const ask = { ...given, prompt: given.prompt.trim() === '' ? 'A tollgate in the morning' : given.prompt };
  const body = videoBody(model, ask);
  const openai = {
    model,
    prompt: body['prompt'],
    seconds: ask.duration.replace(/s$/, ''),
  };
  return [
    {
      id: 'curl',
      name: 'curl',
      code: `${curl(QUEUE_PATH, body)}

# with the id of the answer:
${curl('/api/v1/video/retrieve', { task_id: '<id>', wait_for_final: true }, ['  -o video.mp4'])}`,
    },
    {
      id: 'openai',
      name: 'openai',
      code: `${OPENAI}
let video = await client.videos.create(${jsonText(openai)});
while (video.status === 'queued' || video.status === 'in_progress') video = await client.videos.retrieve(video.id);
const file = await client.videos.downloadContent(video.id);
`,
    },
    asSent(QUEUE_PATH, body),
  ];
}
