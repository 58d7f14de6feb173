import type { FastifyInstance } from 'fastify';
import { dropOldest } from '#wire';
import type { PagePath } from './page-paths.ts';

interface PageFacts {
  readonly title: string;
  readonly description: string;
  /** The line above the heading, such as the name of a service. Empty on most pages. */
  readonly above: string;
  /** The sentence below the heading. The page itself shows the same one. */
  readonly lead: string;
  readonly boot: Readonly<Record<string, unknown>>;
  readonly own: boolean;
  readonly firstPaint: string | null;
  readonly scripts: readonly string[];
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const escape = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character]!);

/** JSON inside of a document. `<` is escaped, so that no text can end the element. */
const inDocument = (value: unknown): string => JSON.stringify(value).replaceAll('<', String.raw`\u003c`);

const TITLE_MAX = 120;
const DESCRIPTION_MAX = 300;

/**
 * Makes the document of a page. `template` is the built document with placeholders such as `{{title}}` for the members
 * of `values`.
 */
export function pageDocument(
  template: string,
  { title, description, above, lead, boot, own, firstPaint, scripts }: PageFacts,
): string {
  const values: Readonly<Record<string, string>> = {
    above: escape(above),
    heading: escape(title),
    lead: own ? '' : escape(lead),
    title: escape(`${title.slice(0, TITLE_MAX)} · tollgate`),
    description: escape(description.slice(0, DESCRIPTION_MAX)),
    boot: inDocument(boot),
  };
  const first =
    firstPaint === null
      ? ''
      : `<script type="module" crossorigin async blocking="render" src="${firstPaint}"></script>`;
  const document = template.replaceAll(/\{\{(\w+)\}\}/g, (whole, name: string) => values[name] ?? whole);
  const more = [
    ...scripts.map((path) => `<link rel="modulepreload" href="${path}">`),
    ...(own ? ['<meta name="robots" content="noindex">'] : []),
  ];
  return document
    .replace('<script type="module"', (tag) => first + tag)
    .replace('</head>', () => `${more.join('')}</head>`);
}

const SERVICES = '/api/v1/services';
const ANALYTICS = '/api/v1/analytics/public';
const OF_SERVICES = '/api/v1/analytics/service';

/**
 * Returns the API requests for what a page shows first, with the same paths as in `web/src/api/`. The browser starts
 * them while it still loads the scripts. Large answers that are shown further down, such as schemas of tools, are not
 * among them. `rest` is the part of the path that the `*` matches.
 */
export function earlyRequests(
  { path, service }: Pick<PagePath, 'path' | 'service'>,
  rest: string,
  analytics: boolean,
): readonly string[] {
  const name = rest.split('/').map(encodeURIComponent).join('/');
  if (service) return [`${SERVICES}/${service}/${name}`, ...(analytics ? [`${OF_SERVICES}/${service}/${name}`] : [])];
  switch (path) {
    case '/marketplace':
      return [SERVICES, ...(analytics ? [ANALYTICS, OF_SERVICES] : [])];
    case '/providers':
      return ['/api/v1/providers'];
    case '/providers/*':
      return [`/api/v1/providers/${name}`];
    default:
      return [];
  }
}

interface FirstAnswers {
  /** Paths that the browser requests while it still loads the scripts. */
  readonly early: readonly string[];
  /** Answers inside of the document, by path, so that the page needs no request for them. */
  readonly answers?: Readonly<Record<string, unknown>>;
}

/**
 * The most characters of an answer inside of the document. A longer one would delay the styles and scripts on a slow
 * line.
 */
const ANSWER_MAX = 8_192;
/** An answer is reused for this time. */
const FRESH_MS = 1_000;
const KEPT_MAX = 256;

/**
 * Puts the first answer into the document if it is small. The answer is requested from the API inside of this process,
 * without a credential, at most once per second.
 */
export function createFirstAnswers(
  server: Pick<FastifyInstance, 'inject'>,
  now: () => number = () => performance.now(),
): (early: readonly string[]) => Promise<FirstAnswers> {
  const answers = new Map<string, { readonly until: number; readonly answer: Promise<unknown> }>();
  const ask = async (url: string): Promise<unknown> => {
    const { statusCode, body } = await server.inject({ url, headers: { accept: 'application/json' } });
    return statusCode === 200 && body.length <= ANSWER_MAX ? (JSON.parse(body) as unknown) : null;
  };
  return async (early) => {
    const [first, ...rest] = early;
    if (first === undefined) return { early };
    let entry = answers.get(first);
    if (!entry || entry.until <= now()) {
      answers.delete(first);
      answers.set(first, (entry = { until: now() + FRESH_MS, answer: ask(first) }));
      dropOldest(answers, KEPT_MAX);
    }
    const answer = await entry.answer;
    return answer === null ? { early } : { early: rest, answers: { [first]: answer } };
  };
}
