import type { Primitive } from '#config';
import { type Access, offersWithin } from '#accounts';
import type { Catalog, Offer } from '#catalog';
import type { ServiceDescription } from '#bridge';
import type { A2aVersion } from '../wire/protocol.ts';
import type { AgentCard } from './agent-card.ts';
import { cardPrice, type CardAuth, ownCard, rewriteCard } from './write-card.ts';
import { readContent, cardText } from './card-content.ts';
import { createCardPages, type CardOrigin, type CardPage } from './card-pages.ts';
import type { FetchCard, KnownCard } from './fetch-card.ts';
import { createKnownCards, type NetworkOf } from './known-cards.ts';
import { DEFAULT_FACTS, readCard, type CardFacts } from './read-card.ts';
import { signCard, type SignBytes } from './sign-card.ts';

export interface CardsOptions {
  readonly fetchCard: FetchCard;
  readonly sign: SignBytes | null;
  readonly auth: CardAuth;
  readonly x402: boolean;
  readonly version: string;
  readonly now: () => number;
  readonly random: () => number;
  readonly networkOf: NetworkOf;
  readonly date?: () => number;
  readonly onError: (error: unknown, offer: Offer) => void;
  readonly onChanged?: (offer: Offer) => void;
  /** Longest wait for an agent's card; default 10 s. */
  readonly timeoutMs?: number;
}

export interface Cards {
  /**
   * The protocol facts of an offer's agent; DEFAULT_FACTS if it has no card. Waits for at most one fetch. Never
   * rejects.
   */
  facts(offer: Offer): Promise<CardFacts>;
  /** The offer whose agent's card the card of a service shows: the first with a card, else the first of all. */
  preferred(offers: readonly Offer[]): Promise<Offer>;
  /**
   * The gateway's card of a service. Its content is from the first agent with a card. It says streaming if every agent
   * streams. A failure of an agent never makes it reject.
   */
  card(request: CardRequest): Promise<CardPage>;
  bridged(request: Omit<CardRequest, 'offers'>, bridged: BridgedAgent): CardPage;
  /**
   * The gateway's form of an agent's extended card, in the form of 1.0 and not yet signed. `card`: the card from the
   * agent.
   */
  extended(request: CardRequest, card: unknown): AgentCard;
  /** Signs a card if the operator named its origin. Otherwise returns the card unchanged. */
  signed(card: object, origin: CardOrigin): object;
  /** The gateway's own card, with the agents that `access` allows; null for all. */
  own(
    catalog: Pick<Catalog, 'offers' | 'version'>,
    access: Access | null,
    version: A2aVersion,
    origin: CardOrigin,
  ): CardPage;
}

interface CardRequest {
  /** The name from the request: a pinned provider or a suffix stays in the card's addresses. */
  readonly service: string;
  /** Not empty. */
  readonly offers: readonly Offer[];
  /** The form of the card. Clients of both versions can read 0.3. */
  readonly version: A2aVersion;
  readonly origin: CardOrigin;
}

export interface BridgedAgent extends ServiceDescription {
  readonly primitive: Primitive;
  /** Its name without the prefix of the primitive. */
  readonly name: string;
}

const NAME_MAX = 200;
const TEXT_MAX = 8_000;
/** How many providers of a service are asked for their card. */
const ASKED_MAX = 8;

export function createCards(options: CardsOptions): Cards {
  const { fetchCard, sign, auth, x402, version: ownVersion, onChanged } = options;
  const known = createKnownCards({
    ...options,
    fetch: fetchCard,
    ...(onChanged ? { onChanged: (offer: Offer) => onChanged(offer) } : {}),
  });
  const pages = createCardPages({ sign, ...(options.date ? { date: options.date } : {}) });
  /** The card of an agent; null for models and tools, which have no card. */
  const cardOf = (offer: Offer): Promise<KnownCard | null> =>
    offer.agent ? known.cardOf(offer) : Promise.resolve(null);
  const cardsOf = (offers: readonly Offer[]): Promise<readonly (KnownCard | null)[]> =>
    Promise.all(offers.slice(0, ASKED_MAX).map(cardOf));

  return {
    facts: async (offer) => (await cardOf(offer))?.facts ?? DEFAULT_FACTS,

    async preferred(offers) {
      const cards = await cardsOf(offers);
      const at = cards.findIndex((card) => card !== null);
      return offers[Math.max(at, 0)]!;
    },

    async card({ service, offers, version, origin }) {
      const cards = await cardsOf(offers);
      const displayName = cardText(offers[0]!.displayName, NAME_MAX) || service;
      const description =
        offers.map((offer) => cardText(offer.description, TEXT_MAX)).find((text) => text !== '') ?? '';
      const price = cardPrice(offers);
      const content = JSON.stringify([
        service,
        displayName,
        description,
        price,
        cards.map((card) => card?.hash ?? null),
      ]);
      return pages.page(content, version, origin, () =>
        rewriteCard(cards.find((card) => card !== null)?.content ?? null, {
          url: `${origin.url}/a2a/${service}`,
          name: displayName,
          description,
          streaming: cards.every((card) => card?.facts.streaming === true),
          price,
          auth,
          x402,
        }),
      );
    },

    bridged({ service, version, origin }, { primitive, name, offers, inputModes, outputModes, ...about }) {
      const displayName = cardText(about.displayName, NAME_MAX) || name;
      const description =
        cardText(about.description, TEXT_MAX) || `${displayName}, a ${primitive} that is called as an agent`;
      const price = cardPrice(offers);
      const content = JSON.stringify([service, displayName, description, price, inputModes, outputModes]);
      return pages.page(content, version, origin, () =>
        rewriteCard(
          {
            name: displayName,
            description,
            version: '1.0.0',
            extended: false,
            extensions: [],
            inputModes,
            outputModes,
            skills: [{ id: cardText(name, NAME_MAX), name: displayName, description, tags: [primitive] }],
          },
          {
            url: `${origin.url}/a2a/${service}`,
            name: displayName,
            description,
            streaming: true,
            push: false,
            price,
            auth,
            x402,
          },
        ),
      );
    },

    signed: (card, { url, known: isOurs }) => (sign && isOurs ? signCard(card, sign, url) : card),

    extended({ service, offers, origin }, card) {
      const { displayName, description } = offers[0]!;
      return rewriteCard(readContent(card), {
        url: `${origin.url}/a2a/${service}`,
        name: displayName,
        description,
        streaming: readCard(card, null).streaming,
        price: cardPrice(offers),
        auth,
        x402,
      });
    },

    own(catalog, access, version, origin) {
      const offers = offersWithin(catalog, access).offers('agent');
      const which = access === null ? '' : JSON.stringify(offers.map(({ service }) => service));
      return pages.page(`own ${catalog.version()} ${which}`, version, origin, () =>
        ownCard(offers, { url: `${origin.url}/a2a`, version: ownVersion, auth, x402 }),
      );
    },
  };
}
