/** The parts of the document that depend on the page and the gateway. */
interface PageFacts {
  readonly title: string;
  readonly description: string;
  /** The line above the heading, such as the name of a service. Empty on most pages. */
  readonly above: string;
  /** The sentence below the heading. The page itself shows the same one. */
  readonly lead: string;
  /** Facts about the gateway for the page's scripts. */
  readonly boot: Readonly<Record<string, unknown>>;
  readonly own: boolean;
  /** The script that runs as soon as it is loaded, or null. */
  readonly firstPaint: string | null;
  /** Scripts to load in addition to those of the document. */
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
