import type { Primitive } from '#config';
import type { Catalog, Offer, Spoken } from '#gateway';
import type { A2aVersion } from '../wire/version.ts';
import type { AgentCard } from './agent-card.ts';
import { readContent } from './card-content.ts';
import { cardPrice } from './card-price.ts';
import { cardText } from './card-text.ts';
import { createCardPages, type CardOrigin, type CardPage } from './card-pages.ts';
import type { CardAuth } from './card-security.ts';
import type { FetchCard, KnownCard } from './fetch-card.ts';
import { createKnownCards } from './known-cards.ts';
import { ownCard } from './own-card.ts';
import { DEFAULT_FACTS, readCard, type CardFacts } from './read-card.ts';
import { rewriteCard } from './rewrite-card.ts';
import { signCard, type SignBytes } from './sign-card.ts';

export interface CardsOptions {
  readonly fetchCard: FetchCard;
  /** null: cards are not signed. */
  readonly sign: SignBytes | null;
  readonly auth: CardAuth;
  /** Whether calls can be paid by x402. */
  readonly x402: boolean;
  /** Of this gateway, in its own card. */
  readonly version: string;
  readonly now: () => number;
  readonly random: () => number;
  /** Epoch milliseconds, for when a card was last changed; default the clock. */
  readonly date?: () => number;
  /** Told why an agent's card could not be fetched. */
  readonly onError: (error: unknown, offer: Offer) => void;
  /** Told when an agent's card is another one than before. */
  readonly onChanged?: (offer: Offer) => void;
  /** Longest wait for an agent's card; default 10 s. */
  readonly timeoutMs?: number;
}

export interface Cards {
  /**
   * How the agent of an offer is spoken to; DEFAULT_FACTS where it has no card. Waits for one fetch at most. Never
   * rejects.
   */
  facts(offer: Offer): Promise<CardFacts>;
  /**
   * Our card of a service: what the first of its agents that has a card says, streaming where every agent streams.
   * Never rejects because of an agent.
   */
  card(request: CardRequest): Promise<CardPage>;
  /** The card of a model or a tool that is called as an agent, made from the catalogue. */
  bridged(request: Omit<CardRequest, 'offers'>, bridged: BridgedAgent): CardPage;
  /**
   * The card that an agent shows to those whom it knows, as ours, in 1.0's form: made of `card` as the agent gave
   * it. Not signed yet.
   */
  extended(request: CardRequest, card: unknown): AgentCard;
  /** A card that is shown as it stands, with our signature where the operator has named the address that it is for. */
  signed(card: object, origin: CardOrigin): object;
  /** The gateway's own card. */
  own(catalog: Pick<Catalog, 'offers' | 'version'>, version: A2aVersion, origin: CardOrigin): CardPage;
}

interface CardRequest {
  /** As it was asked for: a pinned provider or a suffix stays in the card's addresses. */
  readonly service: string;
  /** Not empty. */
  readonly offers: readonly Offer[];
  /** 0.3 is the form that clients of both versions read. */
  readonly version: A2aVersion;
  readonly origin: CardOrigin;
}

/** A model or a tool. */
export interface BridgedAgent extends Spoken {
  readonly primitive: Primitive;
  /** Its own, without what says which primitive it is. */
  readonly name: string;
}

const NAME_MAX = 200;
const TEXT_MAX = 8_000;
/** Of a service with more providers, so many are asked for their card. */
const ASKED_MAX = 8;

/** Our cards of the services, made of what their agents show. */
export function createCards(options: CardsOptions): Cards {
  const { fetchCard, sign, auth, x402, version: ownVersion, onChanged } = options;
  const known = createKnownCards({
    ...options,
    fetch: fetchCard,
    ...(onChanged ? { onChanged: (offer: Offer) => onChanged(offer) } : {}),
  });
  const pages = createCardPages({ sign, ...(options.date ? { date: options.date } : {}) });
  /** Models and tools that are called as agents have no card of their own. */
  const cardOf = (offer: Offer): Promise<KnownCard | null> =>
    offer.agent ? known.cardOf(offer) : Promise.resolve(null);

  return {
    facts: async (offer) => (await cardOf(offer))?.facts ?? DEFAULT_FACTS,

    async card({ service, offers, version, origin }) {
      const cards = await Promise.all(offers.slice(0, ASKED_MAX).map(cardOf));
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

    own: (catalog, version, origin) =>
      pages.page(`own ${catalog.version()}`, version, origin, () =>
        ownCard(catalog.offers('agent'), { url: `${origin.url}/a2a`, version: ownVersion, auth, x402 }),
      ),
  };
}
