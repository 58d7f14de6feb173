import type { Offer } from '#gateway';
import type { ImageWire } from './image-wire.ts';
import { openaiImages } from './openai-images.ts';
import { openrouterImages } from './openrouter-images.ts';
import { tollgateImages } from './tollgate-images.ts';

const WIRES = { openai: openaiImages, tollgate: tollgateImages, openrouter: openrouterImages };

/** The wire that an offer of images speaks. */
export const wireOf = ({ media }: Offer): ImageWire => WIRES[media!.imageApi?.wire ?? 'openai'];
