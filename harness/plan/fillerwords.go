package plan

import (
	"strings"
)

// entryTemplates are the sentences of the filler: each tells of something that happened, so that none reads as a wish to
// the reader. A name in braces is filled from entryWords or, for few, amount and clock, with a number.
var entryTemplates = templates(
	"{person} weighed {amount} {measure} of {goods} at the {building} and found {few} of them damp.",
	"The {role} of {place} had asked for {amount} {measure} of {goods}, yet only {amount} came with the {weekday} boat.",
	"At {clock} the {building} was shut because {cause}.",
	"A letter from {place} said that {cause}, and that {outcome}.",
	"{person} and {person} disagreed over the {adjective} {thing}, which the {role} then locked in the {building}.",
	"Of {amount} {measure} promised by {person}, {few} were {adjective} and the rest never left {place}.",
	"The {thing} was repaired for {amount} crowns by some {role} from {place}, who stayed {few} nights.",
	"{person} walked from {place} to {place} in {few} hours, although {cause}.",
	"Nobody at the {building} could say why {cause}, but by {month} {outcome}.",
	"It was {clock} when the {role} noticed that the {adjective} {thing} had been left in the {building}.",
	"{few} carts of {goods} went north, {few} went to {place}, and one was still at the {building} in {month}.",
	"The price of {goods} rose from {few} to {amount} crowns after {cause}.",
	"In the opinion of {person}, {cause}; the {role} held that {outcome}.",
	"{person} sold the {thing} for {amount} crowns, less than half of what one {role} in {place} had offered.",
	"Between {clock} and {clock} the bell of the {building} rang {few} times, and {outcome}.",
	"The survey counted {amount} {measure} in the {building}, {amount} in the yard and {few} on the quay of {place}.",
	"Since {cause}, {person} took the {adjective} road by {place} and lost {few} days.",
	"One {role} named {person} kept {goods} under the floor of the {building} until {month}.",
	"The {adjective} {thing} came to {place} as a gift of {person}, together with {amount} {measure} of {goods}.",
	"By {weekday} {outcome}, and {person} wrote {few} pages about it to the {role}.",
	"Water stood {few} fingers deep in the {building}, so the {goods} were carried up to the loft.",
	"{person} had {few} children, one {thing} and a debt of {amount} crowns to the {role} of {place}.",
	"On the last {weekday} of {month} the {role} read out {amount} names, among them {person} and {person}.",
	"The {building} at {place} burned for {few} hours; {amount} {measure} of {goods} were saved.",
	"What {person} remembered best was the {adjective} {thing}, and that {cause}.",
	"Every {weekday} that {month}, one {role} crossed to {place} with {few} baskets of {goods}.",
	"The council of {place} voted {amount} crowns for the new {thing}, {few} members being absent.",
	"{outcome}, as {person} told the {role} at {clock}, before the {building} had opened.",
	"Some blamed {person}, others the {role}, and a few the plain fact that {cause}.",
	"The map of {place} showed some {building} where there had only ever been {amount} {measure} of {goods}.",
	"{person} measured the {thing} twice, at {clock} and at {clock}, and got {amount} both times.",
	"For {few} winters the {goods} of {place} went untaxed, because {cause}.",
	"The {role} paid {person} {amount} crowns for {few} days of work on the {building}.",
	"The {adjective} fog of {month} kept {few} boats at {place} from {clock} onwards, and {outcome}.",
	"{person} found the {thing} behind the {building}, {adjective} but whole, with {amount} written on its side.",
	"The inspector listed {few} faults of the {building}: the worst was that {cause}.",
	"Trade in {goods} moved from {place} to {place} within {few} years, and {outcome}.",
	"{person} left {place} in {month} with {amount} crowns, returned in {month} with {few}, and said nothing of it.",
	"The {role} and {person} shared one {thing}, which each believed to be the other's.",
	"A count of {weekday} gave {amount} {measure}, the count of {weekday} {few} more, and no one found out why.",
)

// entryWords are what the templates' names stand for, in ASCII without quotes and backslashes, so that a body needs no
// escapes but those of line ends.
var entryWords = map[string][]string{
	"person": words("Anna Holt, Piet Maartens, Ruth Alder, Jonas Weir, Clara Finch, Tomas Brandt, Edith Lowe, Karel Novy, " +
		"Martha Quill, Osman Reyes, Ingrid Dahl, Samuel Pike, Lucia Ferrante, Henrik Voss, Nora Tindall, Bram Kuyper, " +
		"Agnes Mallory, Viktor Sand, Josephine Carr, Emil Rask, Harriet Stone, Pavel Orlik, Winifred Gray, Mateo Rios, " +
		"Greta Lindholm, Arthur Penn, Salome Beck, Yusuf Demir, Dorothea Lamb, Oskar Thiel, Maud Everett, Lorenzo Bassi, " +
		"Hester Vane, Anton Kraus, Beatrice Noon, Leif Sorensen, Philippa Dunn, Radek Hora, Cecily Marsh, Ivo Petric"),
	"place": words("Marrowby, Old Tarn, Velden, Saltmouth, Greyfell, Port Aldous, Hexwater, Lindau Bridge, Corran, Eastry, " +
		"Thornwick, Black Ferry, Osterholm, Penrudd, Quarry Hill, Sandhaven, Little Moss, Vantage, Kelder, Dunmarsh, " +
		"Whitsand, Upper Brae, Fallow End, Nordby, Stonegate, Castle Rue, Millbrook, Harrow Point, Redcliff, Winterton, " +
		"Ashby Lock, Long Reach, Karlsund, Bellmoor, Tiverne, Ferrow, Dry Wells, Overstrand, Lower Pike, Havnes"),
	"goods": words("barley, salted herring, lamp oil, roofing slate, wool, cider, candles, rope, dried plums, copper wire, " +
		"glass beads, coal, tallow, rye flour, linen, honey, oak bark, writing paper, hops, quicklime, cork, tin plate, " +
		"smoked eel, madder, charcoal, walnuts, sailcloth, vinegar, goose feathers, brick clay, turpentine, seed potatoes"),
	"measure": words("sacks, barrels, crates, bales, bundles, casks, baskets, loads, tubs, chests, rolls, jars, stacks, hampers"),
	"building": words("customs house, mill, granary, chapel, rope walk, boat shed, school, brewery, toll gate, post office, " +
		"signal tower, tannery, market hall, pump house, lime kiln, inn, warehouse, foundry, infirmary, ferry landing, " +
		"library, observatory, dairy, sawmill, lighthouse, stable, archive, weighing room, weaving shed, armoury"),
	"role": words("harbour master, miller, surveyor, notary, lamplighter, schoolteacher, ferryman, bailiff, cooper, midwife, " +
		"clockmaker, beekeeper, postmistress, glazier, carter, librarian, apothecary, stonemason, tax clerk, pilot, " +
		"bookbinder, gardener, locksmith, organist, shepherd, printer, cartographer, dyer, wheelwright, steward"),
	"thing": words("ledger, barometer, lantern, anchor, loom, water clock, printing press, brass scale, church bell, compass, " +
		"sundial, plough, telescope, grindstone, iron stove, harmonium, sledge, winch, copper kettle, weather vane, " +
		"spinning wheel, cannon, oak chest, map case, millstone, fishing net, hand pump, signal flag, mirror, cradle"),
	"adjective": words("narrow, weathered, painted, borrowed, heavy, crooked, silent, polished, forgotten, frozen, patched, " +
		"hollow, faded, stubborn, costly, yellow, broken, northern, dusty, sealed, smaller, second, rusted, unfinished, " +
		"handsome, muddy, curious, tilted, foreign, ancient"),
	"weekday": words("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"),
	"month":   words("January, February, March, April, May, June, July, August, September, October, November, December"),
	"cause": words("the river had frozen early, the key was in another town, the tide came in an hour too soon, " +
		"both clerks had the fever, the axle broke on the hill, a wall had slipped in the rain, the lamps ran dry, " +
		"half of the crew had gone home for the harvest, the seal did not match, the ink had faded beyond reading, " +
		"the road was under snow, the new scale showed too little, the horses were lame, the wind turned at noon, " +
		"the old contract had lapsed, two barges lay across the lock, the bridge took no carts, the clock ran slow, " +
		"no one had counted the empty crates, the well tasted of iron, the roof let in the damp, a page was missing, " +
		"the wages were three weeks late, the ferry cable had snapped, the surveyor had used the wrong chain, " +
		"mice had got at the grain, the judge was travelling, the pass stayed shut, the fire bell could not be heard"),
	"outcome": words("the matter was never raised again, the village bought a second pump, the fee was halved, " +
		"the boats stayed in harbour, a fence was put up along the canal, the accounts balanced at last, " +
		"the market moved to the lower square, the school had a roof again, three families went abroad, " +
		"the old mill was pulled down, a bridge was built in stone, the loan was paid back, the records were copied out, " +
		"the price fell by a third, the lamps burned until dawn, the dispute went before the bishop, " +
		"every second field lay fallow, the ferry ran twice a day, the orchard was sold, the dam held, " +
		"the clock was set by the railway, the wool went to the weavers across the bay, the quarry closed, " +
		"the guild had a new master, the mail came by sledge, the garden was walled in, the debt was forgiven"),
}

func words(list string) []string { return strings.Split(list, ", ") }

// template is a sentence in pieces: a text, then what follows it.
type template []templatePiece

type templatePiece struct {
	text string
	slot string // "" for none
}

// templates reads sentences with names in braces.
func templates(sentences ...string) []template {
	all := make([]template, len(sentences))
	for i, s := range sentences {
		for s != "" {
			text, rest, _ := strings.Cut(s, "{")
			slot, after, _ := strings.Cut(rest, "}")
			all[i] = append(all[i], templatePiece{text: text, slot: slot})
			s = after
		}
	}
	return all
}
