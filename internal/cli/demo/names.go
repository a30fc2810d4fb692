package demo

import (
	"fmt"
	"math/rand/v2"
)

var (
	given = []string{"Asha", "Ravi", "Meera", "Imran", "Kavita", "Suresh", "Farida", "Jignesh", "Lata", "Anil", "Nisha", "Harish",
		"Salma", "Dinesh", "Pooja", "Vikram", "Rekha", "Yusuf", "Geeta", "Mahesh"}
	family = []string{"Shah", "Soni", "Mehta", "Patel", "Rao", "Khan", "Zaveri", "Iyer", "Desai", "Joshi", "Verma", "Parmar",
		"Chauhan", "Nair", "Bhatt", "Shaikh"}
	banks  = []string{"HDFC current account", "SBI current account", "Cash in hand"}
	houses = []string{"Jewellers", "Ornaments", "Gold House", "Silver Palace", "& Sons", "Gems"}
	cities = []string{"Surat", "Rajkot", "Jaipur", "Mumbai", "Ahmedabad", "Kolkata", "Hyderabad", "Indore"}
	pieces = []string{"payal", "bangle", "ring", "chain", "jhumka", "kada", "pendant", "nath", "tops", "bichhiya", "mangalsutra",
		"waist chain"}
	styles = []string{"plain", "meena", "kundan", "oxidised", "filigree", "antique", "gold-plated", "hammered"}
	asks   = []string{
		"Is my order ready?", "What is the price of a plain payal today?", "Do you make this in 92.5 silver?",
		"Please send photos of new bangles.",
		"Can I have it by Friday?", "Are you open on Sunday?", "May I return unworn jewellery?", "How long does polishing take?",
	}
	answers = []string{"Yes, please come by after eleven.", "It will be ready on Friday.", "I have sent the photos.",
		"Yes, in 92.5 and in 99.9.", "We are open until eight."}
	wishes = []string{
		"Do you deliver to %s? We need them before Diwali.", "Please quote for a yearly order, with hallmark. We are in %s.",
		"Can you make these lighter? Our buyers in %s ask for it.",
		"We run two shops in %s and look for a supplier.", "Is there a catalog for resellers in %s?",
	}
)

//nolint:dupword // a heading, and its text
const faq = `Opening hours
Our showroom is open from Monday to Saturday between 11 in the morning and 8 in the evening. On Sunday we are open from 11 to 4.

Returns
Unworn jewellery may be returned within 15 days with its bill. Making charges are not refunded.

Polishing
Polishing and plating take three working days. Repairs of chains take one.

Purity
Every piece is hallmarked. Silver is 92.5, gold 22 karat, unless the bill says otherwise.
`

func pick(random *rand.Rand, of []string) string { return of[random.IntN(len(of))] }

func person(random *rand.Rand) (first, last string) { return pick(random, given), pick(random, family) }

// piece returns the name of a piece of jewellery.
func piece(random *rand.Rand) string { return pick(random, styles) + " " + pick(random, pieces) }

// house returns the name of the nth shop: different for each n.
func house(n int) string {
	return inRound(family[n%len(family)]+" "+houses[n/len(family)%len(houses)], n/(len(family)*len(houses)))
}

// bankAccount returns the name of the nth bank account: different for each n.
func bankAccount(n int) string { return inRound(banks[n%len(banks)], n/len(banks)) }

// inRound adds the round's number to a name, except in the first round.
func inRound(name string, round int) string {
	if round > 0 {
		name += fmt.Sprintf(" %d", round+1)
	}
	return name
}

// phone returns the nth phone of a range. The sandbox reaches each of them, because none ends in 000.
func phone(from, n int) string { return fmt.Sprintf("9197%d%06d1", from, n) }
