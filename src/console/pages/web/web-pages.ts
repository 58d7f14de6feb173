import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import type { OwnOrigin } from '#security';
import type { Mode } from '#config';
import { answerMissingPages, hasTagged, tagOf } from '#http';
import type { Catalog } from '#catalog';
import { findBuilt, ROOT, readPages, type PageFile, type PageFiles, pageHeaders } from './page-files.ts';
import { earlyRequests, createFirstAnswers, pageDocument } from './page-document.ts';
import { PAGE_PATHS, type PagePath } from './page-paths.ts';

interface WebPagesOptions {
  readonly version: string;
  readonly mode: Mode;
  readonly publicUrl: string | null;
  readonly ownOrigin: OwnOrigin;
  /**
   * Addresses of pages that are on another site, by the beginning of their path here. null for this gateway's own
   * pages.
   */
  readonly elsewhere: Readonly<Record<string, string | null>>;
  readonly signInDomains: readonly string[];
  readonly analytics: boolean;
  readonly authorization: boolean;
  /** The name on the button of the company's people. null if they cannot sign in. */
  readonly people: string | null;
  readonly catalog: Pick<Catalog, 'offers'>;
  /** Called with the reason if there are no pages, or older ones than their sources. */
  readonly onMissing: (reason: string) => void;
}

export interface WebPages {
  /** Finds or builds the pages now. Without this call, it happens at the first request for a page. */
  prepare(): Promise<void>;
  close(): void;
}

const HIDDEN = { schema: { hide: true } } as const;
const HTML = 'text/html; charset=utf-8';

/** Serves the web pages: a document for each of their paths, and the files that the documents load. */
export function addWebPages(server: FastifyInstance, options: WebPagesOptions): WebPages {
  const headers = pageHeaders(options.publicUrl);
  const ending = new AbortController();
  let files: Promise<PageFiles | null> | null = null;
  const firstAnswers = createFirstAnswers(server);
  const pages = () => (files ??= open(ending.signal, options.onMissing));

  const elsewhere = Object.entries(options.elsewhere).filter((entry): entry is [string, string] => entry[1] !== null);
  const bootFor = (request: FastifyRequest) => ({
    version: options.version,
    base_url: options.ownOrigin(request) ?? '<this address>',
    mode: options.mode,
    sign_in_domains: options.signInDomains,
    analytics: options.analytics,
    authorization: options.authorization,
    people: options.people,
    elsewhere: elsewhere.map(([path]) => path),
  });
  answerMissingPages(server, async (request, reply) => {
    const built = await pages();
    if (built === null) throw new GatewayError('not_found', `There is no such page: ${request.url.slice(0, 200)}`);
    const document = pageDocument(built.document, {
      ...NOT_FOUND,
      description: 'There is no such page.',
      boot: { ...bootFor(request), early: [] },
      own: true,
      firstPaint: null,
      scripts: [],
    });
    return reply.code(404).headers(headers).header('cache-control', 'no-cache').type(HTML).send(document);
  });
  for (const page of PAGE_PATHS) {
    const [, url] = elsewhere.find(([begin]) => `${page.path}/`.startsWith(`${begin}/`)) ?? [];
    if (url !== undefined) {
      server.get(page.path, HIDDEN, (_request, reply) => reply.redirect(url));
      continue;
    }
    server.get<{ Params: { readonly '*'?: string } }>(page.path, HIDDEN, async (request, reply) => {
      const built = await pages();
      if (built === null) return reply.code(503).type('text/plain; charset=utf-8').send(MISSING);
      const rest = request.params['*'] ?? '';
      const { known, ...facts } = factsOf(page, rest, options.catalog);
      const early = known ? earlyRequests(page, rest, options.analytics) : [];
      const boot = { ...bootFor(request), ...(page.service ? await firstAnswers(early) : { early }) };
      const document = pageDocument(built.document, {
        ...facts,
        boot,
        own: page.own ?? false,
        firstPaint: page.service ? built.firstPaint : null,
        scripts: page.page ? built.scriptsOf(page.page) : [],
      });
      const etag = tagOf(document);
      void reply.headers(headers).headers({ etag, 'cache-control': 'no-cache' });
      if (known && hasTagged(request, etag)) return reply.code(304).send();
      return reply
        .code(known ? 200 : 404)
        .type(HTML)
        .send(document);
    });
  }

  // The list of services of one kind is the marketplace with a filter. A program that asks here for a list, because the
  // base URL of its client is wrong, is not sent to a page.
  for (const { path, service } of PAGE_PATHS)
    if (service)
      server.get(path.replace('/*', ''), { ...HIDDEN, config: { visitsOnly: true } }, (_request, reply) =>
        reply.redirect(`/marketplace?kind=${service}`),
      );

  // The guide imports it at this address, because its pages don't know the name with the hash.
  server.get('/docs/static/search.js', HIDDEN, async (_request, reply) => {
    const built = await pages();
    if (!built?.search) throw new GatewayError('not_found', 'This gateway has no built search');
    return reply.header('cache-control', 'no-cache').redirect(built.search);
  });

  server.get<{ Params: { readonly file: string } }>('/assets/:file', HIDDEN, async (request, reply) => {
    const built = await pages();
    const path = `/assets/${request.params.file}`;
    const file = built === null ? undefined : built.files.get(path);
    if (!file) throw new GatewayError('not_found', `No such file: ${path.slice(0, 200)}`);
    return sendFile(request, reply.headers(headers), file);
  });

  return {
    prepare: async () => {
      await pages();
    },
    close: () => ending.abort(),
  };
}

async function open(signal: AbortSignal, onMissing: (reason: string) => void): Promise<PageFiles | null> {
  const built = await findBuilt({ root: ROOT, signal });
  if ('reason' in built) {
    if (!signal.aborted) onMissing(built.reason);
    return null;
  }
  if (built.older !== undefined) onMissing(built.older);
  try {
    return await readPages(built.folder);
  } catch (error) {
    onMissing(`The web pages cannot be read: ${(error as Error).message}`);
    return null;
  }
}

/** Only the log has the reason, because it contains paths of this machine. */
const MISSING =
  'This gateway has no web pages at the moment. Its API works. The operator finds the reason in its log.\n';

/** A file's name contains the hash of its content, so it may be cached forever. */
const FOREVER = 'public, max-age=31536000, immutable';

function sendFile(request: FastifyRequest, reply: FastifyReply, file: PageFile): FastifyReply {
  const accepted = request.headers['accept-encoding'] ?? '';
  const [encoding, bytes] =
    file.brotli && /\bbr\b/.test(accepted)
      ? (['br', file.brotli] as const)
      : file.gzip && /\bgzip\b/.test(accepted)
        ? (['gzip', file.gzip] as const)
        : ([null, file.bytes] as const);
  void reply.headers({ 'cache-control': FOREVER, vary: 'accept-encoding', etag: file.etag });
  if (hasTagged(request, file.etag)) return reply.code(304).send();
  if (encoding) void reply.header('content-encoding', encoding);
  return reply.type(file.type).send(bytes);
}

interface SharedFacts {
  readonly title: string;
  readonly description: string;
  readonly above: string;
  readonly lead: string;
  readonly known: boolean;
}

const NOT_FOUND = { title: 'Not found', above: '', lead: '', known: false } as const;

function factsOf(page: PagePath, rest: string, catalog: Pick<Catalog, 'offers'>): SharedFacts {
  const { title, description, service, provider } = page;
  if (service) {
    const offer = catalog.offers(service).find((each) => each.service === rest);
    if (!offer) return { ...NOT_FOUND, description: 'There is no such service.' };
    return {
      title: offer.displayName,
      description: offer.description || description,
      above: rest,
      lead: offer.description,
      known: true,
    };
  }
  if (provider) {
    const offer = catalog.offers().find((each) => each.provider.id === rest);
    if (!offer) return { ...NOT_FOUND, description: 'There is no such provider.' };
    return { title: offer.provider.name, description, above: rest, lead: '', known: true };
  }
  return { title, description, above: '', lead: description, known: true };
}
