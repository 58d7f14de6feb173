import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createOwnOrigin } from '#security';
import { referenceRoutes } from '#pages';
import { diagramFile, diagramMark, diagramsOf } from '../../../../src/console/pages/guide/guide-document.ts';
import { ROOT } from '../../../architecture/source.ts';

// The guide at /docs/guide as any HTTP client gets it.

let app: FastifyInstance;
let url: string;
beforeAll(async () => {
  app = Fastify({ forceCloseConnections: true });
  await referenceRoutes(app, {
    version: '1.2.3',
    payable: false,
    exampleModel: () => null,
    publicUrl: null,
    ownOrigin: createOwnOrigin({ publicUrl: null }),
  });
  url = await app.listen({ port: 0, host: '127.0.0.1' });
});
afterAll(() => app.close());

const get = (path: string, headers: Record<string, string> = {}) => fetch(url + path, { headers });
const GUIDE = '/docs/guide';

it('has every page of docs/, and every link of it leads somewhere', async () => {
  const files = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
  const paths = files
    .filter((file) => file.endsWith('.md'))
    .map((file) => [file, file.replace(/(?:^|\/)README\.md$|\.md$/, '')] as const)
    .map(([file, path]) => [file, path === '' ? GUIDE : `${GUIDE}/${path}`] as const);
  const texts = new Map<string, string>();
  const broken: string[] = [];
  for (const [file, path] of [
    ...paths,
    ['../CHANGELOG.md', `${GUIDE}/changelog`],
    ['decisions/README.md', `${GUIDE}/decisions`],
  ] as const) {
    const page = await get(path);
    expect(page.status, path).toBe(200);
    const text = await page.text();
    texts.set(path, text);
    for (const [, href] of text.matchAll(/title="In the repository: ([^"#]*)/g)) {
      const target = join('docs', dirname(file), href!);
      if (target.startsWith('docs/') || !existsSync(join(ROOT, target))) broken.push(`${path}: ${href}`);
    }
  }
  for (const [path, text] of texts)
    for (const [, href] of text.matchAll(/(?:href|src)="(\/docs\/guide[^"]*|#[^"]*)"/g)) {
      const [to = '', anchor] = href!.split('#');
      const target = texts.get(to === '' ? path : to);
      if (target === undefined && !/\/(?:assets|images)\/|\.md$/.test(to)) broken.push(`${path}: ${href}`);
      if (target !== undefined && anchor !== undefined && !target.includes(`id="${anchor}"`))
        broken.push(`${path}: ${href}`);
    }
  expect(broken).toEqual([]);
});

it('shows each diagram as a picture of its present source', async () => {
  const files = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.md'),
  );
  const old: string[] = [];
  let drawn = 0;
  for (const file of files)
    for (const [index, source] of diagramsOf(readFileSync(join(ROOT, 'docs', file), 'utf8')).entries()) {
      const name = diagramFile(file, index);
      const picture = await get(`${GUIDE}/images/${name}`);
      if (!(await picture.text()).includes(diagramMark(source))) old.push(`${name}: run node scripts/diagrams.ts`);
      const page = await (await get(`${GUIDE}/${file.replace(/\.md$/, '')}`)).text();
      expect(page).toContain(`src="${GUIDE}/images/${name}"`);
      drawn += 1;
    }
  expect(old).toEqual([]);
  expect(drawn).toBeGreaterThan(0);
});

it('links nowhere that only the repository has', async () => {
  const page = await (await get(`${GUIDE}/architecture`)).text();
  expect(page).toContain('<span class="source" title="In the repository: ../src/mcp/README.md">');
});

it('has a strict policy, no script and no style in a document, and an answer for what has not changed', async () => {
  const page = await get(`${GUIDE}/use/chat`);
  const policy = page.headers.get('content-security-policy')!;
  for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "trusted-types 'none'"])
    expect(policy).toContain(rule);
  expect(policy).not.toContain('unsafe');
  const text = await page.text();
  expect(text).not.toMatch(/<script(?![^>]* src=)|<style| style="| on\w+="/);
  expect(text).toContain('<title>Chat: call a model with any OpenAI client · tollgate guide</title>');
  expect(text).toContain('aria-current="page"');
  const etag = page.headers.get('etag')!;
  expect((await get(`${GUIDE}/use/chat`, { 'if-none-match': etag })).status).toBe(304);
});

it('shows markup of a page as text', async () => {
  const page = await (await get(`${GUIDE}/release`)).text();
  expect(page).toContain('tollgate-&lt;version&gt;.tgz');
});

it('answers an unknown page with a page, and no file outside of it', async () => {
  for (const path of ['/no-such-page', '/images/no-such.png', '/..%2f..%2fpackage.json', '/images/..%2f..%2fLICENSE']) {
    const answer = await get(`${GUIDE}${path}`);
    expect(answer.status, path).toBe(404);
    expect(await answer.text()).toContain('The guide has no such page');
  }
});

it('has each page as Markdown, and an index for the search', async () => {
  const text = await get(`${GUIDE}/clients/openai.md`);
  expect(text.headers.get('content-type')).toBe('text/markdown; charset=utf-8');
  expect(await text.text()).toMatch(/^# /);
  // The links of what is served lead on.
  for (const from of ['README.md', 'clients/README.md', 'decisions/README.md']) {
    const page = await (await get(`${GUIDE}/${from}`)).text();
    const links = [...page.matchAll(/\]\((?!https?:)([^)#]+\.md)/g)].map(([, to]) => to!);
    const broken = await Promise.all(
      links.map(async (to) => ((await get(new URL(to, `http://here${GUIDE}/${from}`).pathname)).ok ? [] : to)),
    );
    expect(
      broken.flat().filter((to) => !to.includes('src/')),
      from,
    ).toEqual([]);
  }
  const index = (await (await get(`${GUIDE}/assets/search.json`)).json()) as readonly (readonly string[])[];
  const found = index.filter(([address]) => address === `${GUIDE}/use/fallbacks#retries`);
  expect(found).toEqual([
    [`${GUIDE}/use/fallbacks#retries`, expect.any(String), 'Retries', expect.stringContaining('never sent twice')],
  ]);
  expect((await get(`${GUIDE}/search`)).status).toBe(404);
});

it('has its pictures and its own files', async () => {
  const types = { 'images/provider.svg': 'svg', 'assets/guide.js': 'javascript', 'assets/guide.css': 'css' };
  for (const [path, type] of Object.entries(types)) {
    const answer = await get(`${GUIDE}/${path}`);
    expect(answer.status, path).toBe(200);
    expect(answer.headers.get('content-type')).toContain(type);
  }
});
