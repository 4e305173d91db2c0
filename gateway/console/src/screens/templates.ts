/** What a new canvas can begin with. Pure data: each template is one batch of operations. */
import type { components } from "../contract.ts";

type Operation = components["schemas"]["Operation"];
type NewNode = components["schemas"]["NewNode"];
type Purpose = NonNullable<components["schemas"]["ConnectionCreate"]["purpose"]>;

/** An Action on an image of the template, into one of its empty nodes, by its name within the batch. */
export interface TemplateAction {
  action: string;
  params: Record<string, string | number>;
  from: string;
  into: string;
}

export interface Template {
  id: string;
  title: string;
  says: string;
  /** The images that it shows, by the names of their files. */
  images: readonly string[];
  /** `assetOf`: the handle of an image, by the name of its file. */
  operations: (assetOf: (image: string) => string) => Operation[];
  actions?: readonly TemplateAction[];
}

// Nodes, by their titles

/** The name of a node within the batch. */
const named = (title: string): string => title.replaceAll(/[^A-Za-z0-9]+/g, "-");

type Box = [x: number, y: number, width: number, height: number];

const create = (type: NewNode["type"], title: string, [x, y, width, height]: Box, home: string | undefined, rest: Partial<NewNode> = {}): Operation => ({
  type: "node.create",
  clientId: named(title),
  ...(home !== undefined && { sectionId: named(home) }),
  node: { type, title, position: { x, y }, width, height, ...rest },
});
const section = (title: string, box: Box) => create("sticky", title, box, undefined, { metadata: { section: true } });
const text = (title: string, content: string, box: Box, home?: string) => create("text", title, box, home, { metadata: { content } });
const note = (title: string, content: string, color: string, box: Box, home?: string) => create("sticky", title, box, home, { metadata: { content, color } });
const image = (title: string, box: Box, home?: string, asset?: string) => create("image", title, box, home, asset === undefined ? {} : { asset });
const link = (from: string, to: string, purpose: Purpose = "flow"): Operation => ({ type: "connection.create", fromNodeId: named(from), toNodeId: named(to), purpose });

/** Height of the title below an image. */
const CAPTION = 28;
/** Empty nodes in a row, each of this height and its own ratio. */
function row(home: string, x: number, y: number, height: number, slots: [title: string, ratio: number][], gap = 40): Operation[] {
  let left = x;
  return slots.map(([title, ratio]) => {
    const width = Math.round(height * ratio);
    const slot = image(title, [left, y, width, height + CAPTION], home);
    left += width + gap;
    return slot;
  });
}

const [BLUE, GREEN, ORANGE, VIOLET] = ["#bfdcff", "#c7e9d4", "#ffc9a3", "#d9c8ff"] as const;

/** What a new account can look around in. The Actions are done when it is made. */
export const SAMPLE: Template = {
  id: "sample",
  title: "Autumn tableware, sample",
  says: "A small campaign with images: a brief, a moodboard, and formats that are being made when you open it.",
  images: ["two-cups", "bowls", "vase", "carafe", "glazes", "table"],
  operations: (assetOf) => [
    section("Brief", [0, 0, 560, 800]),
    image("Two cups at the window", [40, 80, 480, 388], "Brief", assetOf("two-cups")),
    text("Client brief", "Tableware for autumn: one cup, one bowl, one carafe. Warm side light, oat and brick glazes, nothing glossy.", [40, 508, 480, 130], "Brief"),
    note("Try this", "Select the cups and press G to make something from them.", "#ffe48a", [40, 668, 480, 92], "Brief"),
    section("Moodboard", [640, 0, 1100, 800]),
    image("Bowls, oat and slate", [680, 80, 320, 348], "Moodboard", assetOf("bowls")),
    image("Carafe and cup", [680, 468, 320, 268], "Moodboard", assetOf("carafe")),
    image("Vase with an olive branch", [1040, 80, 320, 455], "Moodboard", assetOf("vase")),
    note("Light", "Late afternoon, from the left. Keep the shadows.", ORANGE, [1040, 575, 320, 120], "Moodboard"),
    image("Table for two", [1400, 80, 300, 221], "Moodboard", assetOf("table")),
    image("Glaze tests", [1400, 341, 300, 253], "Moodboard", assetOf("glazes")),
    section("Formats", [1820, 0, 1000, 800]),
    image("Square", [1860, 80, 330, 358], "Formats"),
    image("Story", [2230, 80, 324, 604], "Formats"),
    image("Card", [1860, 478, 330, 276], "Formats"),
    note("Next", "Mark what you like with F. Shift E exports it.", GREEN, [2594, 80, 186, 200], "Formats"),
    ...["Square", "Card"].map((title) => link("Two cups at the window", title)),
    link("Vase with an olive branch", "Story"),
  ],
  actions: [
    { action: "change-aspect-ratio", params: { ratio: "1:1" }, from: "two-cups", into: "Square" },
    { action: "change-aspect-ratio", params: { ratio: "9:16" }, from: "vase", into: "Story" },
    { action: "add-text-to-image", params: { text: "From earth, for every morning" }, from: "two-cups", into: "Card" },
  ],
};

/** The templates, in the order of the gallery. */
export const TEMPLATES: readonly Template[] = [
  {
    id: "campaign",
    title: "Campaign from one product image",
    says: "One image, four formats, and the lines that go with it.",
    images: [],
    operations: () => [
      section("Product", [0, 0, 560, 780]),
      image("Product image", [40, 80, 480, 388], "Product"),
      text("Brief", "Who is it for, what should it say, what must not change?", [40, 508, 480, 110], "Product"),
      note("How to begin", "Drop an image on the first place. Select it, and Format in its bar makes the others.", ORANGE, [40, 648, 480, 92], "Product"),
      section("Formats", [640, 0, 1607, 488]),
      ...row("Formats", 680, 80, 340, [["Square, 1:1", 1], ["Post, 4:5", 4 / 5], ["Story, 9:16", 9 / 16], ["Banner, 16:9", 16 / 9]]),
      section("Lines", [640, 548, 1607, 232]),
      text("Headline", "", [680, 620, 480, 120], "Lines"),
      text("Subline", "", [1200, 620, 480, 120], "Lines"),
      text("Button", "", [1720, 620, 487, 120], "Lines"),
      ...["Square, 1:1", "Post, 4:5", "Story, 9:16", "Banner, 16:9"].map((title) => link("Product image", title)),
    ],
  },
  {
    id: "moodboard",
    title: "Moodboard",
    says: "Places for images, words and colors of one mood.",
    images: [],
    operations: () => [
      section("Mood", [0, 0, 1520, 960]),
      image("Key image", [40, 80, 520, 548], "Mood"),
      image("Light", [600, 80, 400, 294], "Mood"),
      image("Material", [600, 414, 400, 428], "Mood"),
      image("Place", [1040, 80, 440, 608], "Mood"),
      text("In words", "Three words for how it should feel.", [40, 668, 520, 130], "Mood"),
      note("Yes", "What belongs here.", GREEN, [40, 828, 240, 92], "Mood"),
      note("No", "What does not.", ORANGE, [320, 828, 240, 92], "Mood"),
      note("Colors", "Name them, or color this note.", BLUE, [1040, 728, 440, 114], "Mood"),
    ],
  },
  {
    id: "storyboard",
    title: "Storyboard to video",
    says: "A script, five frames, and a video that begins with the first.",
    images: [],
    operations: () => {
      const frames = ["Opening", "Hands", "Product", "Use", "Closing"];
      return [
        section("Script", [0, 0, 560, 452]),
        text("What happens", "Five sentences, one for each frame.", [40, 80, 480, 200], "Script"),
        note("Sound", "Voice, music, or only what is heard there.", BLUE, [40, 320, 480, 92], "Script"),
        section("Frames", [0, 532, 2055, 452]),
        ...row("Frames", 40, 612, 204, frames.map((title): [string, number] => [title, 16 / 9])),
        ...frames.map((title, at) => text(`${title}, words`, "", [40 + at * 403, 872, 363, 72], "Frames")),
        create("video", "Video, first cut", [640, 80, 600, 366], undefined),
        link("Opening", "Video, first cut", "first-frame"),
      ];
    },
  },
  {
    id: "social",
    title: "Social formats",
    says: "The sizes of each channel, side by side, from one image.",
    images: [],
    operations: () => [
      section("Source", [0, 0, 480, 620]),
      image("Image", [40, 80, 400, 328], "Source"),
      note("How to begin", "Drop an image here, select it, and choose Format in its bar.", ORANGE, [40, 448, 400, 132], "Source"),
      section("Feed", [560, 0, 740, 620]),
      ...row("Feed", 600, 80, 340, [["Square, 1080 × 1080", 1], ["Portrait, 1080 × 1350", 4 / 5]]),
      text("Post", "The text of the post.", [600, 488, 660, 92], "Feed"),
      section("Stories", [0, 700, 580, 620]),
      ...row("Stories", 40, 780, 402, [["Story, 1080 × 1920", 9 / 16], ["Reel cover, 1080 × 1920", 9 / 16]], 48),
      section("Wide", [660, 700, 640, 620]),
      image("Link, 1200 × 628", [700, 780, 560, 321], "Wide"),
      text("Link text", "A title and one line.", [700, 1141, 560, 92], "Wide"),
      ...["Square, 1080 × 1080", "Portrait, 1080 × 1350", "Story, 1080 × 1920", "Reel cover, 1080 × 1920", "Link, 1200 × 628"].map((title) => link("Image", title)),
    ],
  },
  {
    id: "lookbook",
    title: "Lookbook",
    says: "A cover and three spreads. Each is a page when you present or print.",
    images: [],
    operations: () => [
      section("Cover", [0, 0, 620, 760]),
      image("Cover image", [40, 80, 540, 528], "Cover"),
      text("Cover title", "Season, year", [40, 638, 540, 82], "Cover"),
      ...[1, 2, 3].flatMap((spread) => {
        const [home, x, y] = [`Spread ${spread}`, spread === 2 ? 0 : 1120, spread === 1 ? 0 : 840];
        return [
          section(home, [x, y, 1040, 760]),
          image(`Look ${2 * spread - 1}`, [x + 40, y + 80, 460, 528], home),
          image(`Look ${2 * spread}`, [x + 540, y + 80, 460, 528], home),
          text(`Words ${spread}`, "Pieces, fabrics, prices.", [x + 40, y + 638, 960, 82], home),
        ];
      }),
      note("How to present", "Shift P shows Section by Section, and prints each on a page.", VIOLET, [700, 80, 300, 160]),
    ],
  },
];
