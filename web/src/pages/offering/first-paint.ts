import type { Service } from '../../api/service.ts';
import { calledOf, snippetsOf } from './code.ts';

// Paints the code of a service below the heading that came with the document, while React is still on its way. React
// draws the same at the same place: test/web/visitor.test.ts holds both together. Nothing is loaded for it that the
// page does not need anyway.

const boot = JSON.parse(document.getElementById('boot')?.textContent ?? '{}') as {
  readonly base_url?: string;
  readonly answers?: Readonly<Record<string, { readonly data: Service }>>;
};
const [answer] = Object.values(boot.answers ?? {});
const place = document.getElementById('first-paint');
if (place && answer) place.append(codeCard(answer.data));

function codeCard(service: Service): Element {
  const snippets = snippetsOf(calledOf(service, boot.base_url || location.origin));
  const { code, note } = snippets[0]!;
  const tabs = snippets.map(({ name }, index) =>
    element(
      'span',
      `border-b-2 px-3 py-2.5 text-sm font-medium whitespace-nowrap ${index === 0 ? 'border-accent text-ink' : 'border-transparent text-soft'}`,
      name,
    ),
  );
  const pre = element('pre', 'overflow-x-auto py-3.5 pl-4 pr-12 font-mono text-[13px] leading-[21px]', code);
  return element(
    'section',
    'min-w-0 overflow-hidden rounded-xl border border-line bg-card',
    element(
      'div',
      'flex min-h-13 flex-wrap items-center justify-between gap-x-4 gap-y-2 border-b border-line px-4 py-2 sm:px-5',
      element('h2', 'text-base', 'Use it from code'),
    ),
    element(
      'div',
      'px-4 py-4 sm:px-5 sm:py-5',
      element('div', 'flex gap-1 overflow-x-hidden border-b border-line', ...tabs),
      element(
        'div',
        'grid grid-cols-[minmax(0,1fr)] gap-3 pt-4',
        ...(note === undefined ? [] : [element('p', 'text-sm text-soft', note)]),
        element('div', 'min-w-0 rounded-lg border border-line bg-sunk', pre),
      ),
    ),
  );
}

function element(tag: string, className: string, ...children: readonly (Element | string)[]): Element {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...children);
  return made;
}
