/** Facts that differ from page to page, and from gateway to gateway. */
interface PageFacts {
  readonly title: string;
  readonly description: string;
  /** Facts about the gateway that the page begins with. */
  readonly boot: Readonly<Record<string, unknown>>;
  readonly own: boolean;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const escape = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character]!);

/** JSON inside of a document: no text in it can end the element. */
const inDocument = (value: unknown): string => JSON.stringify(value).replaceAll('<', String.raw`\u003c`);

const TITLE_MAX = 120;
const DESCRIPTION_MAX = 300;

/** The document of a page. `template` is the built one, with `{{title}}`, `{{description}}` and `{{boot}}` in it. */
export function pageDocument(template: string, { title, description, boot, own }: PageFacts): string {
  const values: Readonly<Record<string, string>> = {
    title: escape(`${title.slice(0, TITLE_MAX)} · tollgate`),
    description: escape(description.slice(0, DESCRIPTION_MAX)),
    boot: inDocument(boot),
  };
  const document = template.replaceAll(/\{\{(\w+)\}\}/g, (whole, name: string) => values[name] ?? whole);
  return own ? document.replace('<head>', '<head>\n    <meta name="robots" content="noindex" />') : document;
}
