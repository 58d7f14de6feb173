import type { Offer } from '#catalog';

/*
 * Fields that the gateway itself adds to requests, such as `stream_options`. A refusal that names one is not the fault
 * of the client: the request goes once more without it. If the offer takes that request, and had said that it does not
 * know the field, later requests go without it from the beginning. Words of a client in a refusal teach nothing,
 * because they are in the second request too.
 */

/** In the order in which they were learnt. A reload or a new registration makes a new Offer, which learns again. */
const learnt = new WeakMap<Offer, readonly string[]>();
const NONE: readonly string[] = [];

/** The fields that an offer is known to refuse. */
export const fieldsRefusedBy = (offer: Offer): readonly string[] => learnt.get(offer) ?? NONE;

/** The fields that are left out at the offer that a call asks. */
export class RefusedFields {
  #offer: Offer | null = null;
  #fields: readonly string[] = [];
  #unknown: readonly string[] = [];

  has(offer: Offer, field: string): boolean {
    return fieldsRefusedBy(offer).includes(field) || (this.#offer === offer && this.#fields.includes(field));
  }

  /** The offer has refused the field: `unknown`, or in words that may be about this request alone. */
  add(offer: Offer, field: string, refusal: 'unknown' | 'named'): void {
    if (this.#offer !== offer) this.#fields = this.#unknown = [];
    this.#offer = offer;
    this.#fields = [...this.#fields, field];
    if (refusal === 'unknown') this.#unknown = [...this.#unknown, field];
  }

  /** The offer has taken the request without the fields that it had refused. */
  learn(offer: Offer): void {
    if (this.#offer !== offer || this.#unknown.length === 0) return;
    learnt.set(offer, [...new Set([...fieldsRefusedBy(offer), ...this.#unknown])]);
    this.#unknown = [];
  }
}

/** Of a call that nothing was refused in: what was learnt from others. */
export const NO_REFUSALS = new RefusedFields();
