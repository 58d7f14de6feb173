import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { hasTagged, tagOf } from '#http';
import { ROOT, pageHeaders } from '../web/page-files.ts';
import type { Guide, GuidePage } from './guide-pages.ts';

export interface GuideOptions {
  readonly version: string;
  readonly publicUrl: string | null;
}

interface GuideResponse {
  readonly status: 200 | 404;
  readonly type: string;
  readonly bytes: Buffer;
  readonly packed: Buffer | null;
  readonly etag: string;
}

const HIDDEN = { schema: { hide: true } } as const;
const HTML = 'text/html; charset=utf-8';
const IMAGES: Readonly<Record<string, string>> = { svg: 'image/svg+xml', png: 'image/png' };

/**
 * The guide at `/docs/guide`. A page of `docs/` is rendered at its first request and then cached. Nothing is loaded
 * before the first request.
 */
export async function guideRoutes(app: FastifyInstance, { version, publicUrl }: GuideOptions): Promise<void> {
  const headers = pageHeaders(publicUrl);
  const answers = new Map<string, Promise<GuideResponse | null>>();
  let loading: Promise<Guide> | null = null;
  const guide = () => (loading ??= import('./guide-pages.ts').then(({ readGuide }) => readGuide(ROOT)));

  const send = async (
    request: FastifyRequest,
    reply: FastifyReply,
    key: string,
    make: () => Promise<GuideResponse | null>,
  ) => {
    let answer = answers.get(key);
    if (answer === undefined) {
      answer = make();
      answers.set(key, answer);
      // Missing pages aren't cached, because there are endless addresses.
      void answer.then(
        (response) => response ?? answers.delete(key),
        () => answers.delete(key),
      );
    }
    const result = (await answer) ?? (await missing());
    void reply.headers(headers).headers({ etag: result.etag, 'cache-control': 'no-cache', vary: 'accept-encoding' });
    if (result.status === 200 && hasTagged(request, result.etag)) return reply.code(304).send();
    void reply.code(result.status).type(result.type);
    if (result.packed === null || !/\bgzip\b/.test(request.headers['accept-encoding'] ?? ''))
      return reply.send(result.bytes);
    return reply.header('content-encoding', 'gzip').send(result.packed);
  };
  let notFound: Promise<GuideResponse> | null = null;
  const missing = () =>
    (notFound ??= import('./guide-document.ts').then(async ({ missingDocument }) =>
      answerOf(missingDocument(await guide(), version), HTML, 404),
    ));
  const page = async (path: string) => {
    const guidePage = (await guide()).pages.get(path);
    if (guidePage === undefined) return null;
    const { guideDocument } = await import('./guide-document.ts');
    return answerOf(guideDocument(await guide(), guidePage, version), HTML);
  };
  const text = async (path: string) => {
    const guidePage = (await guide()).sources.get(path);
    return guidePage ? answerOf(sourceText(guidePage), 'text/markdown; charset=utf-8') : null;
  };
  const image = async (name: string) => {
    const type = IMAGES[name.split('.').at(-1)!];
    if (type === undefined || !(await guide()).images.has(name)) return null;
    return answerOf(await readFile(join(ROOT, 'docs/images', name)), type);
  };

  app.get('/docs/guide', HIDDEN, (request, reply) => send(request, reply, '', () => page('')));
  app.get<{ Params: { readonly '*': string } }>('/docs/guide/*', HIDDEN, (request, reply) => {
    const path = request.params['*'];
    const make = path.endsWith('.md')
      ? () => text(path)
      : path.startsWith('images/')
        ? () => image(path.slice('images/'.length))
        : () => page(path);
    return send(request, reply, path, make);
  });
  app.get('/docs/guide/assets/guide.css', HIDDEN, (request, reply) => send(request, reply, 'assets/guide.css', styles));
  app.get('/docs/guide/assets/guide.js', HIDDEN, (request, reply) =>
    send(request, reply, 'assets/guide.js', () => script('guide.js')),
  );
  app.get('/docs/guide/assets/search.json', HIDDEN, (request, reply) =>
    send(request, reply, 'assets/search.json', async () => {
      const { searchIndex } = await import('./search-index.ts');
      return answerOf(JSON.stringify(searchIndex(await guide())), 'application/json; charset=utf-8');
    }),
  );
}

/** A page as Markdown. The guide serves CHANGELOG.md in the same folder as `docs/`, so links to it lose one `../`. */
const sourceText = ({ text }: GuidePage): string => text.replaceAll(/\]\(\.\.\/((?:\.\.\/)*CHANGELOG\.md)/g, ']($1');

const beside = (name: string) => readFile(new URL(name, import.meta.url));
const styles = async () => {
  const { PALETTE, THEME_STYLE } = await import('../front/front-document.ts');
  // The frame's style sheet must be last, because it overrides the text's styles on small screens.
  const files = await Promise.all(['guide-text.css', 'guide-frame.css'].map(beside));
  return answerOf([PALETTE, THEME_STYLE, ...files.map(String)].join('\n'), 'text/css; charset=utf-8');
};
const script = async (name: string) => answerOf(await beside(name), 'text/javascript; charset=utf-8');

async function answerOf(content: string | Buffer, type: string, status: 200 | 404 = 200): Promise<GuideResponse> {
  const bytes = Buffer.from(content);
  const packed = type === 'image/png' ? null : await promisify(gzip)(bytes);
  return { status, type, bytes, packed, etag: tagOf(bytes) };
}
