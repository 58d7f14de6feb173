import { jsonText } from './snippet.ts';

/** Code for the JavaScript package `openai`. `lines` use the variable `client`. */
export const openaiJs = (base: string, lines: string): string =>
  `import OpenAI from 'openai';\n\nconst client = new OpenAI({ baseURL: '${base}/api/v1', apiKey: process.env.KEY });\n${lines}`;

/** Code for the Python package `openai`. `lines` use the variable `client`. */
export const openaiPy = (base: string, lines: string): string =>
  `import os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url="${base}/api/v1", api_key=os.environ["KEY"])\n${lines}`;

/** Queues a video, waits for it and downloads its file. `body` is the body of `POST /api/v1/videos`. */
export const openaiVideo = (base: string, body: unknown): string =>
  openaiJs(
    base,
    `let video = await client.videos.create(${jsonText(body)});
while (video.status === 'queued' || video.status === 'in_progress') video = await client.videos.retrieve(video.id);
const file = await client.videos.downloadContent(video.id);`,
  );
