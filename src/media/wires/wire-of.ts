import type { Offer } from '#gateway';
import type { ImageWire } from './image-wire.ts';
import { openaiImages } from './openai-images.ts';

/** The wire that an offer of images speaks. */
export const wireOf = (_offer: Offer): ImageWire => openaiImages;
