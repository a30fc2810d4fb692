package knowledge

import "strings"

// empty has words of Hindi and Gujarati, also in Latin letters, that say nothing about what is asked. Postgres knows those of English.
var empty = func() map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(`
		क्या है हैं का की के को में से पर और या कैसे कब कहाँ कहां कौन कौनसा कितना कितने कितनी मैं मेरा मेरी मेरे आप आपका आपकी आपके हम हमारा तो भी ही यह ये वह वो इस उस
		कि जो कर करें करते करता करना सकते सकता सकती हूँ हूं हो होता होती होते होगा होगी था थी थे लिए ने एक कुछ मुझे बताइए बताओ बताएं कृपया जी क्यों किस किसी तक साथ
		दो दें देते देती लेते जाता जाती रहा रहे रही गया गई चाहिए वाला वाली वाले अगर
		શું છે છો છું નો ની નું ના ને માં થી પર અને કે કેવી રીતે ક્યારે ક્યાં કોણ કેટલા કેટલું કેટલી કેટલો હું મારું મારી મારો મારા તમે તમારા તમારી તમારું અમે અમારા તો પણ જ આ તે
		કરો કરે કરી કરવું શકો શકું શકાય હોય હતું હતી થાય થશે માટે એક કોઈ મને કહો કૃપા જો કઈ કયા કયું કેમ જેવી આપો આપે લો સાથે સુધી જોઈએ વાળા વાળી છતાં
		kya hai hain ka ki ke ko mein me se par aur ya kaise kab kahan kaun kitna kitne kitni main mera meri mere aap aapka aapki aapke hum toh bhi hi yeh ye woh wo
		kar karein karte karta karna sakte sakta sakti hu hoon ho hota hoti hote hoga hogi tha thi liye ne ek kuch mujhe bataiye batao please ji kyon kis tak sath
		do dete lete jata jati raha rahe rahi gaya gayi chahiye wala wali wale agar
		shu su che chhe cho chu no ni nu na ne ma thi ane kevi rite kyare kya kyaan kon ketla ketlu ketli hu maru mari maro mara tame tamara tamari tamaru ame amara aa te
		karo kare kari shako shakay hoy thay thashe mate koi mane kaho jo kai kem aapo ape sathe sudhi joie`) {
		all[word] = true
	}
	return all
}()
