import { jsonText } from './snippet.ts';

/** Lines for the client `openai` of JavaScript, which is `client`. */
export const openaiJs = (base: string, lines: string): string =>
  `import OpenAI from 'openai';\n\nconst client = new OpenAI({ baseURL: '${base}/api/v1', apiKey: process.env.KEY });\n${lines}`;

/** Lines for the client `openai` of Python, which is `client`. */
export const openaiPy = (base: string, lines: string): string =>
  `import os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url="${base}/api/v1", api_key=os.environ["KEY"])\n${lines}`;

/** Has a video made, waits for it and fetches its file. `body` is that of `POST /api/v1/videos`. */
export const openaiVideo = (base: string, body: unknown): string =>
  openaiJs(
    base,
    `let video = await client.videos.create(${jsonText(body)});
while (video.status === 'queued' || video.status === 'in_progress') video = await client.videos.retrieve(video.id);
const file = await client.videos.downloadContent(video.id);`,
  );
