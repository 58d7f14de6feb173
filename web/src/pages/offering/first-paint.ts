import type { ServiceDetail } from '../../api/catalogue.ts';
import { buttonStyle } from '../../ui/button-style.ts';
import { priceGroups, type PriceLine, priceLines } from '../../ui/price-words.ts';
import { since } from '../../ui/since.ts';
import { factsOf, priceSentence, priceTitle } from './card-texts.ts';
import { calledOf, snippetsOf } from './code.ts';

// Draws the first screen of a service's page (price, facts and code) before React is loaded, below the heading of the
// document. React draws the same elements at the same places, which test/console/pages/visitor.test.ts checks. It uses
// only modules that the page needs anyway.

const boot = JSON.parse(document.getElementById('boot')?.textContent ?? '{}') as {
  readonly base_url?: string;
  readonly answers?: Readonly<Record<string, { readonly data: ServiceDetail }>>;
};
const [answer] = Object.values(boot.answers ?? {});
const place = document.getElementById('first-paint');
if (place && answer) {
  const { data } = answer;
  place.append(
    element('div', 'grid min-w-0 gap-5', codeCard(data)),
    element('div', 'row-start-1 grid min-w-0 gap-5 lg:col-start-2', priceCard(data), factsCard(data)),
  );
  document.getElementById('first-action')?.append(tryIt(data));
}

function tryIt({ name, primitive }: ServiceDetail): Element {
  const link = element('a', buttonStyle('primary'), 'Try it');
  link.setAttribute('href', `/playground?m=${encodeURIComponent(name)}&kind=${primitive}`);
  return link;
}

function priceCard(service: ServiceDetail): Element {
  const groups = priceGroups(service.pricing).map(({ title, lines }) =>
    element('section', 'mt-4', element('h3', 'mb-2 text-sm font-semibold', title), listOf(lines)),
  );
  const sentence = priceSentence(service).map((piece) =>
    typeof piece === 'string' ? piece : element('b', 'figures font-semibold text-ink', piece.strong),
  );
  return card(
    priceTitle(service),
    listOf(priceLines(service.primitive, service.pricing)),
    ...groups,
    element('p', 'mt-4 border-t border-line pt-4 text-sm text-soft', ...sentence),
  );
}

// A declaration, because the code above runs before a constant here would have its value.
function listOf(lines: readonly PriceLine[]): Element {
  return element(
    'dl',
    'grid gap-2',
    ...lines.map(({ amount, unit }) =>
      element(
        'div',
        'flex items-baseline justify-between gap-4',
        element('dt', 'text-sm break-words text-soft', unit),
        element('dd', 'figures font-semibold', amount),
      ),
    ),
  );
}

function factsCard(service: ServiceDetail): Element {
  const facts = factsOf(service).map(([name, value]) =>
    element(
      'div',
      'flex items-baseline justify-between gap-6',
      element('dt', 'whitespace-nowrap text-soft', name),
      element('dd', 'figures text-right', typeof value === 'string' ? value : since(new Date(value.at))),
    ),
  );
  return card('Facts', element('dl', 'grid gap-2 text-sm', ...facts));
}

function codeCard(service: ServiceDetail): Element {
  const snippets = snippetsOf(calledOf(service, boot.base_url || location.origin));
  const { code, note } = snippets[0]!;
  const tabs = snippets.map(({ name }, index) =>
    element(
      'span',
      `border-b-2 px-3 py-2.5 text-sm font-medium whitespace-nowrap ${index === 0 ? 'border-accent text-ink' : 'border-transparent text-soft'}`,
      name,
    ),
  );
  const pre = element('pre', 'mr-11 overflow-x-auto py-3.5 pl-4 font-mono text-[13px] leading-[21px]', code);
  return card(
    'Use it from code',
    element('div', 'flex gap-1 overflow-x-hidden border-b border-line', ...tabs),
    element(
      'div',
      'grid grid-cols-[minmax(0,1fr)] gap-3 pt-4',
      ...(note === undefined ? [] : [element('p', 'text-sm text-soft', note)]),
      element('div', 'min-w-0 rounded-lg border border-line bg-sunk', pre),
    ),
  );
}

/** The same markup as in `ui/card.tsx`. */
function card(title: string, ...content: readonly Element[]): Element {
  return element(
    'section',
    'min-w-0 overflow-hidden rounded-xl border border-line bg-card',
    element(
      'div',
      'flex min-h-13 flex-wrap items-center justify-between gap-x-4 gap-y-2 border-b border-line px-4 py-2 sm:px-5',
      element('h2', 'text-base', title),
    ),
    element('div', 'px-4 py-4 sm:px-5 sm:py-5', ...content),
  );
}

function element(tag: string, className: string, ...children: readonly (Element | string)[]): Element {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...children);
  return made;
}
