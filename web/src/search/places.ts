import { servicePath, type Service } from '../api/catalogue.ts';
import { KIND_NAMES } from '../ui/kinds.ts';
import { createGuideSearch } from './guide.ts';
import { createSearch } from './ranking.ts';
import { createServiceSearch } from './services.ts';

/** A place of this gateway that the search finds. */
export interface Place {
  readonly href: string;
  readonly title: string;
  /** A few words on what is there. */
  readonly about: string;
  /** The kind of place: `Page`, `Guide`, `Model`. */
  readonly kind: string;
}

const page = (href: string, title: string, about: string): Place => ({ href, title, about, kind: 'Page' });

const PUBLIC_PAGES: readonly Place[] = [
  page('/marketplace', 'Marketplace', 'All services with their prices: models, tools, agents, images, videos'),
  page('/playground', 'Playground', 'Try a service, and see what the call costs'),
  page('/rankings', 'Rankings', 'What is used most, by day'),
  page('/providers', 'Providers', 'Who serves, and how well'),
  page('/docs', 'API reference', 'Every endpoint, with code in curl, JavaScript and Python'),
  page('/docs/guide', 'Guide', 'How to use this gateway, run it, and sell on it'),
];
const OWN_PAGES: readonly Place[] = [
  page('/dashboard', 'Overview', 'Balance, spending of today and of the week'),
  page('/dashboard/calls', 'Calls', 'Each call with its cost, receipt and failure; find a call by its id'),
  page(
    '/dashboard/activity',
    'Activity',
    'Spending by day, month, model, key, member and tag; statement, invoice, CSV',
  ),
  page('/dashboard/keys', 'Keys', 'Create, limit, rotate and revoke API keys'),
  page('/dashboard/connect', 'Connect', 'Claude, ChatGPT and other assistants, without a key'),
  page('/dashboard/approvals', 'Approvals', 'Expensive calls that wait for a person'),
  page('/dashboard/balance', 'Balance', 'Top up, pay in, deposits, withdraw money, wallets, movements'),
  page('/dashboard/provider', 'Provider', 'Earnings, calls and failures of services that you sell; payouts'),
  page('/dashboard/organisation', 'Organisation', 'Members of a team, their roles, budgets and limits'),
  page('/dashboard/sessions', 'Sessions', 'Browsers that are signed in; sign out'),
];

const MOST = { pages: 3, services: 5, guide: 5 } as const;
const CALL_ID = /^gen-[\w-]{12,}$/;

interface Sources {
  readonly services: readonly Service[];
  /** The tools of a service by its name. */
  readonly toolsOf: Parameters<typeof createServiceSearch>[1];
  /** The parts of the guide's pages. */
  readonly guide: Parameters<typeof createGuideSearch>[0];
  readonly signedIn: boolean;
}

/** The search over everything: calls by their id, pages, services and the guide, in this order. */
export function createPlaceSearch({
  services,
  toolsOf,
  guide,
  signedIn,
}: Sources): (question: string) => readonly Place[] {
  const pages = signedIn ? [...OWN_PAGES, ...PUBLIC_PAGES] : PUBLIC_PAGES;
  const findPage = createSearch(
    pages,
    [
      { name: 'title', weight: 4, text: ({ title }) => title },
      { name: 'about', weight: 1, text: ({ about }) => about },
    ],
    { least: 1 },
  );
  const findService = createServiceSearch(services, toolsOf);
  const findGuide = createGuideSearch(guide);
  return (question) => {
    const typed = question.trim();
    if (typed === '') return pages;
    const call = CALL_ID.test(typed)
      ? [{ href: `/dashboard/calls/${typed}`, title: typed, about: 'What it cost and why', kind: 'Call' }]
      : [];
    return [
      ...call,
      ...findPage(typed).slice(0, MOST.pages),
      ...findService(typed).slice(0, MOST.services).map(placeOfService),
      ...findGuide(typed)
        .slice(0, MOST.guide)
        .map(([href, title, heading]) => ({
          href,
          title: heading,
          about: heading === title ? '' : title,
          kind: 'Guide',
        })),
    ];
  };
}

const placeOfService = (service: Service): Place => ({
  href: servicePath(service),
  title: service.name,
  about: service.description,
  kind: KIND_NAMES[service.primitive].one,
});
